"""The command `inductoscope`: arguments, exit status and what goes to which stream.

Standard output holds the result and nothing else; sentences about what could not be done go to standard error.  Heavy
imports stand in the functions that need them, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inductoscope.protocol._version import __version__

if TYPE_CHECKING:
    from inductoscope.protocol.own_devices import OwnDevice
    from inductoscope.protocol.report import Report
    from inductoscope.server.check import Checked
    from inductoscope.server.ci.verdict import Wanted
    from inductoscope.server.planning import Options
    from inductoscope.server.text.terminal import Terminal
    from inductoscope.server.text.view import Part

T = TypeVar("T")

OK, FOUND, UNCHECKED = 0, 1, 2
_WATCH_HELP = "after the first report, only what became different is printed"
_CHECK_HELP = "exit status: 0 nothing that --fail-on names was found, 1 something was, 2 something could not be checked"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from inductoscope.server.app import serve

        return serve(arguments[1:])
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _StoppedError as stopped:
        return 128 + stopped.number
    except BrokenPipeError:  # the reader has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNCHECKED


class _StoppedError(Exception):
    """A signal ended the command."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="inductoscope", description="Shows what torch.compile does with your program, line by line."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_check(commands.add_parser("check", help="compile and report", epilog=_CHECK_HELP))
    _add_watch(commands.add_parser("watch", help="check, and again what changes; Ctrl-C ends", epilog=_WATCH_HELP))
    _add_bench(commands.add_parser("bench", help="measure compiled against eager", epilog=_CHECK_HELP))
    _add_guards(commands.add_parser("guards", help="what compiled code is held to, and what would recompile"))
    _add_run(commands.add_parser("run", help="run a program unchanged, and say what was compiled in it"))
    _add_trace(commands.add_parser("trace", help="read what a run wrote with TORCH_TRACE"))
    commands.add_parser("serve", help="serve an editor over LSP", add_help=False)
    _add_sweep(commands.add_parser("sweep", help="measure many combinations on a Ray cluster"))
    _add_devices(commands.add_parser("devices", help="list what can be compiled for, or record this machine's GPU"))
    _add_cache(commands.add_parser("cache", help="what is kept between runs, and to remove it"))
    commands.add_parser("version", help="print the version").set_defaults(command=_version)
    return parser


def _add_check(parser: argparse.ArgumentParser) -> None:
    _add_selection(parser)
    from inductoscope.server.ci import options as ci_options

    ci_options.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    _add_common(parser)
    parser.set_defaults(command=_check)


def _add_watch(parser: argparse.ArgumentParser) -> None:
    _add_selection(parser)
    _add_common(parser)
    parser.set_defaults(command=_watch)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="Python files, or folders to search")
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--device", metavar="DEVICE", help="auto (default), cpu, cuda or sim:NAME; see `devices`")
    parser.add_argument("--rung", metavar="RUNG", help="capture, lower, assemble (default) or measure")
    _add_probe(parser)
    _add_no_cache(parser)
    parts = "kernels, backward, guards, phases, caches, passes, configs, all; ttir, ttgir, llir, ptx, sass, amdgcn"
    parser.add_argument("--show", default="", metavar="LIST", help=f"more of: {parts}")
    only = "show only kernels with this in their names, and assemble those first"
    parser.add_argument("--kernel", metavar="NAME", help=only)


def _add_probe(parser: argparse.ArgumentParser) -> None:
    away = "do not try other sizes of the inputs after the run"
    parser.add_argument("--no-probe", action="store_true", help=away)


def _add_no_cache(parser: argparse.ArgumentParser) -> None:
    run_all = "run everything, also what an earlier run of the same program has the answer to"
    parser.add_argument("--no-cache", action="store_true", help=run_all)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server.bench import command

    command.add_arguments(parser)
    _add_common(parser)
    parser.set_defaults(command=_bench, rung="measure")


def _add_guards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs=1, type=Path, metavar="FILE", help="a Python file")
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--device", metavar="DEVICE", help="auto (default), cpu, cuda or sim:NAME; see `devices`")
    parser.add_argument("--line", type=int, metavar="N", help="only guards that this line made")
    parser.add_argument("--argument", metavar="NAME", help="only guards on this argument or attribute")
    inputs = "would a call with these recompile? such as x=f32[16, 128]; may be repeated"
    parser.add_argument("--with", action="append", default=[], dest="what_if", metavar="INPUTS", help=inputs)
    _add_probe(parser)
    _add_no_cache(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON, without what is not asked for")
    _add_common(parser)
    parser.set_defaults(command=_guards, rung="capture")


def _add_cache(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server import cache_command

    cache_command.add_arguments(parser)
    parser.set_defaults(command=cache_command.run)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server.sweep import command

    command.add_arguments(parser)
    parser.set_defaults(command=command.run)


def _add_devices(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server import devices_command

    devices_command.add_arguments(parser)
    parser.set_defaults(command=lambda arguments: devices_command.run(arguments, _cancellable))


def _add_run(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server import recorded_run

    recorded_run.add_arguments(parser)
    parser.set_defaults(command=recorded_run.run)


def _add_trace(parser: argparse.ArgumentParser) -> None:
    from inductoscope.server.traces import command

    command.add_arguments(parser)
    parser.set_defaults(command=command.run)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PYTHON", help="the interpreter that has torch")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds a run may take")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log and what the program prints")


def _check(arguments: argparse.Namespace) -> int:
    from inductoscope.protocol.report import Report
    from inductoscope.server import gate
    from inductoscope.server.check import check
    from inductoscope.server.ci import options as ci_options
    from inductoscope.server.planning import CheckError
    from inductoscope.server.text.view import PartError

    _set_up_log(arguments)
    try:
        options = _options(arguments)
        wanted = ci_options.wanted(arguments)
        shown = _shown(arguments)
        terminal = None if _is_for_machines(arguments) else _terminal(shown, arguments)
        checked = _cancellable(check(options, terminal.watcher if terminal is not None else None))
    except (CheckError, gate.GateError, ci_options.OptionError, PartError) as error:
        if arguments.json:
            _print_json(Report(__version__, None, None, None, (), str(error)))
        _complain(str(error))
        return UNCHECKED
    if arguments.json:
        _print_json(checked.report)
    elif terminal is not None:
        terminal.end(checked.report)
    return _verdict(arguments, wanted, checked)


def _verdict(arguments: argparse.Namespace, wanted: Wanted, checked: Checked) -> int:
    """The exit status of a check, after whatever else was asked for is written and said."""
    from inductoscope.server.ci import verdict
    from inductoscope.server.ci.baseline import BaselineError
    from inductoscope.server.documents import read_source

    seen = {target.message for target in checked.report.targets} if _is_one_screen(arguments) else set()
    for problem in checked.problems:
        if problem not in seen:
            _complain(problem)
    try:
        judged = verdict.judge(wanted, checked, read_source, Path.cwd())
        if getattr(arguments, "sarif", None) is not None:
            _write_sarif(arguments.sarif, verdict.sarif_text(checked, judged, read_source, Path.cwd()))
    except (BaselineError, OSError) as error:
        _complain(str(error))
        return UNCHECKED
    for sentence in judged.said:
        _complain(sentence)
    if checked.problems:
        return UNCHECKED
    return FOUND if judged.stops else OK


def _write_sarif(file: str, text: str) -> None:
    """Raises `OSError` with a sentence."""
    from inductoscope.server.ci.options import STANDARD_OUTPUT

    if file == STANDARD_OUTPUT:
        _write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(f"The SARIF log cannot be written: {error}.") from None


def _is_for_machines(arguments: argparse.Namespace) -> bool:
    """Whether standard output is no text for people."""
    from inductoscope.server.ci.options import STANDARD_OUTPUT

    return arguments.json or getattr(arguments, "sarif", None) == STANDARD_OUTPUT


def _bench(arguments: argparse.Namespace) -> int:
    from inductoscope.server.bench import command

    _set_up_log(arguments)
    return command.run(arguments, _cancellable, _options)


def _guards(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from inductoscope.protocol.report import Report
    from inductoscope.server.check import check
    from inductoscope.server.planning import CheckError
    from inductoscope.server.text.guards import Selection, only_guards
    from inductoscope.server.text.terminal import print_guards
    from inductoscope.server.text.view import parts

    _set_up_log(arguments)
    try:
        _check_inputs(arguments.what_if)
        checked = _cancellable(check(_options(arguments)))
    except CheckError as error:
        if arguments.json:
            _print_json(Report(__version__, None, None, None, (), str(error)))
        _complain(str(error))
        return UNCHECKED
    wanted = Selection(arguments.line, arguments.argument)
    if arguments.json:
        kept = tuple(only_guards(wanted.of(target)) for target in checked.report.targets)
        _print_json(replace(checked.report, targets=kept))
    else:
        print_guards(checked.report, parts("all" if arguments.verbose else ""), wanted)
    for problem in checked.problems:
        _complain(problem)
    return UNCHECKED if checked.problems else OK


def _check_inputs(texts: Sequence[str]) -> None:
    """Whether each of `texts` can be read as sets of inputs.  Raises `CheckError`."""
    from inductoscope.protocol import input_spec
    from inductoscope.server.planning import CheckError

    for text in texts:
        try:
            input_spec.parse(text)
        except input_spec.InputSpecError as error:
            raise CheckError(f"--with {text!r} cannot be read: {error}.") from None


def _watch(arguments: argparse.Namespace) -> int:
    from inductoscope.server import watch
    from inductoscope.server.check import MOST_AT_ONCE, Runs, at_once
    from inductoscope.server.clock import LoopClock
    from inductoscope.server.planning import CheckError
    from inductoscope.server.text.view import PartError
    from inductoscope.server.watching import Following
    from inductoscope.server.workers import Spare

    _set_up_log(arguments)

    def make() -> watch.Watch:
        slots = at_once(options, MOST_AT_ONCE)
        runs = Runs(options, terminal.watcher, None, slots, Spare.FORK)
        following = Following(LoopClock(), lambda path: False, _complain)
        watched = watch.Watch(options, runs, terminal, following, slots)
        following.tells(watched.changed)
        return watched

    try:
        options, terminal = _options(arguments), _terminal(_shown(arguments), arguments)
        _cancellable(watch.watch(make))
    except (CheckError, PartError) as error:
        _complain(str(error))
        return UNCHECKED
    except _StoppedError as stopped:
        if stopped.number is not signal.SIGINT:  # which is how watching ends
            raise
    return OK


def _shown(arguments: argparse.Namespace) -> frozenset[Part]:
    from inductoscope.server.text.view import parts

    return parts(f"{arguments.show},all" if arguments.verbose else arguments.show)


def _terminal(shown: frozenset[Part], arguments: argparse.Namespace) -> Terminal:
    from inductoscope.server.text.terminal import Terminal

    return Terminal(shown, getattr(arguments, "kernel", None))


def _options(arguments: argparse.Namespace) -> Options:
    from inductoscope.protocol.report import Rung
    from inductoscope.server.config import Probing
    from inductoscope.server.planning import Caching, CheckError, Empty, Options

    rungs = {rung.value: rung for rung in Rung if rung is not Rung.SCAN}
    if arguments.rung is not None and arguments.rung not in rungs:
        raise CheckError(f"--rung {arguments.rung} is none of {', '.join(rungs)}.")
    if arguments.timeout is not None and not arguments.timeout > 0:
        raise CheckError(f"--timeout {arguments.timeout:g} has to be above 0.")
    seconds = getattr(arguments, "seconds", 2.0)
    if not 0 < seconds < float("inf"):
        raise CheckError(f"--seconds {seconds:g} has to be a number above 0.")
    device, own = _device(arguments.device)
    return Options(
        paths=tuple(arguments.paths),
        targets=tuple(arguments.target),
        device=device,
        own=own,
        rung=rungs.get(arguments.rung),
        python=arguments.python,
        timeout_s=arguments.timeout,
        bench_seconds=seconds,
        what_if=tuple(getattr(arguments, "what_if", ())),
        kernel=getattr(arguments, "kernel", None),
        probe=Probing.OFF if getattr(arguments, "no_probe", False) else None,
        empty=Empty.PASSED_OVER if getattr(arguments, "allow_empty", False) else Empty.PROBLEM,
        caching=Caching.OFF if getattr(arguments, "no_cache", True) else Caching.ON,
    )


def _device(text: str | None) -> tuple[str | None, tuple[OwnDevice, ...]]:
    """The device of the command line, and the GPU in the file that it names (`sim:FILE.json`).

    A GPU that is not known may be described in a project.  Raises `CheckError`.
    """
    from inductoscope.protocol import devices, own_devices
    from inductoscope.server.planning import CheckError

    if text is None:
        return None, ()
    word, _, file = text.strip().partition(":")
    try:
        if word.lower() == devices.DeviceKind.SIMULATED.value and file.lower().endswith(".json"):
            own = own_devices.read_file(Path(file.strip()))
            return own.device.text, (own,)
        return devices.parse(text).text, ()
    except devices.UnknownGpuError:
        return text.strip(), ()
    except (devices.UnknownDeviceError, own_devices.OwnDeviceError) as error:
        raise CheckError(f"--device: {error}") from None


def _version(_: argparse.Namespace) -> int:
    _write(f"inductoscope {__version__}\n")
    return OK


def _cancellable(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`; an interrupt, a request to terminate and a lost terminal end it in order, with all its workers.

    Raises `_StoppedError` then.
    """

    received: list[signal.Signals] = []

    async def run() -> T:
        task = asyncio.ensure_future(work)

        def stop(number: signal.Signals) -> None:
            received.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await task

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise _StoppedError(received[0] if received else signal.SIGINT) from None


def _set_up_log(arguments: argparse.Namespace) -> None:
    level = logging.INFO if arguments.verbose else logging.CRITICAL
    logging.basicConfig(stream=sys.stderr, level=level, format="%(name)s: %(message)s")


def _print_json(report: Report) -> None:
    from inductoscope.protocol import codec
    from inductoscope.server.paths import relative_files

    _write(json.dumps(relative_files(codec.to_json(report), Path.cwd()), indent=2, ensure_ascii=False) + "\n")


def _write(text: str) -> None:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream of the interpreter
    sys.stdout.write(text)
    sys.stdout.flush()


def _is_one_screen(arguments: argparse.Namespace) -> bool:
    """Whether what is on standard output is read where standard error is, so that nothing need be said twice."""
    return not arguments.json and sys.stdout.isatty() and sys.stderr.isatty()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"inductoscope: {sentence}\n")
