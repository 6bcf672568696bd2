"""`inductoscope devices`: list what can be compiled for, or record the GPU of this machine.

Its own module beside `cli` because recording has options that nothing else has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inductoscope.protocol.own_devices import OwnDevice
    from inductoscope.server.recording import Recorded

OK, UNCHECKED = 0, 2

RunIt = Callable[[Coroutine[Any, Any, "Recorded"]], "Recorded"]
"""Runs a coroutine to its end, so that a signal ends it in order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only these, such as H200; with --record, Python files"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    record = "read the GPU of this machine, and what torch decides on it for the targets of FILEs, into a device file"
    parser.add_argument("--record", action="store_true", help=record)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where --record writes; default: standard output"
    )
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="record only this one")
    parser.add_argument("--python", metavar="PYTHON", help="the interpreter that has torch")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds that recording a target may take")


def run(arguments: argparse.Namespace, cancellable: RunIt) -> int:
    """Do the command; returns the exit status."""
    from inductoscope.server.planning import CheckError

    try:
        return _record(arguments, cancellable) if arguments.record else _list(arguments)
    except CheckError as error:
        _complain(str(error))
        return UNCHECKED


def _list(arguments: argparse.Namespace) -> int:
    from inductoscope.protocol import devices
    from inductoscope.protocol.own_devices import OwnDevice
    from inductoscope.server.text import devices as text
    from inductoscope.server.text.terminal import print_devices

    if arguments.output is not None or arguments.target:
        _complain("-o and --target belong to --record.")
        return UNCHECKED
    own = _of_the_project()
    shown = _named(arguments.names, own) if arguments.names else (*map(OwnDevice, devices.DEVICES), *own)
    if arguments.json:
        _write(json.dumps(text.as_json(shown), indent=2, ensure_ascii=False) + "\n")
    else:
        print_devices(shown)
    return OK


def _of_the_project() -> tuple[OwnDevice, ...]:
    """The GPUs that the project of this folder describes."""
    from inductoscope.server import config
    from inductoscope.server.planning import CheckError

    try:
        return config.nearest(Path.cwd()).own
    except config.ConfigError as error:
        raise CheckError(str(error)) from None


def _named(names: Sequence[str], own: tuple[OwnDevice, ...]) -> tuple[OwnDevice, ...]:
    """The GPUs with these names, each written `H200`, `sim:H200` or as a device file."""
    from inductoscope.protocol import devices, own_devices
    from inductoscope.protocol.own_devices import OwnDevice
    from inductoscope.server.planning import CheckError

    found = []
    for name in names:
        bare = name.strip().removeprefix("sim:")
        try:
            if bare.lower().endswith(".json"):
                found.append(own_devices.read_file(Path(bare)))
                continue
            device = devices.find(bare, own_devices.figures(own))
        except (devices.UnknownDeviceError, own_devices.OwnDeviceError) as error:
            raise CheckError(str(error)) from None
        found.append(next((one for one in own if one.device is device), OwnDevice(device)))
    return tuple(found)


def _record(arguments: argparse.Namespace, cancellable: RunIt) -> int:
    from inductoscope.protocol import own_devices
    from inductoscope.server import recording
    from inductoscope.server.planning import CheckError, Options
    from inductoscope.server.text.devices import holds

    if arguments.timeout is not None and not arguments.timeout > 0:
        raise CheckError(f"--timeout {arguments.timeout:g} has to be above 0.")
    options = Options(
        paths=tuple(map(Path, arguments.names)),
        targets=tuple(arguments.target),
        python=arguments.python,
        timeout_s=arguments.timeout,
    )
    recorded = cancellable(recording.record(options))
    own = recording.called(recorded.own, arguments.output)
    text = own_devices.to_text(own)
    if arguments.output is None:
        _write(text)
    else:
        try:
            arguments.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CheckError(f"{arguments.output} cannot be written: {error.strerror or error}.") from None
        made = holds(own.recording) if own.recording is not None else "figures only"
        _write(f"{arguments.output}: {own.device.name}, {made}; use it as --device sim:{arguments.output}\n")
    for problem in recorded.problems:
        _complain(problem)
    return UNCHECKED if recorded.problems else OK


def _write(text: str) -> None:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream of the interpreter
    sys.stdout.write(text)
    sys.stdout.flush()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"inductoscope: {sentence}\n")
