"""`inductoscope bench`: its options, and what it prints.

Its own module beside `cli` because measuring has options that nothing else has.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inductoscope.protocol.report import Report
    from inductoscope.server.bench.history import Entry
    from inductoscope.server.bench.measure import Plan
    from inductoscope.server.check import Checked
    from inductoscope.server.planning import Options

OK, FOUND, UNCHECKED = 0, 1, 2

RunIt = Callable[[Coroutine[Any, Any, "Checked"]], "Checked"]
"""Runs a coroutine to its end, so that a signal ends it in order."""

MakeOptions = Callable[[argparse.Namespace], "Options"]
"""The options that all commands share.  Raises `CheckError`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="Python files")
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--device", metavar="DEVICE", help="auto (default: a GPU where there is one), cpu or cuda")
    modes = "of torch.compile, in place of the program's own: default, reduce-overhead, max-autotune; LIST has commas"
    parser.add_argument("--mode", default="", metavar="LIST", help=modes)
    parser.add_argument("--backward", action="store_true", help="a call is a forward and a backward pass")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="timed calls of each side (default 2)")
    error = "add rounds until the speed-up is known to this, at most three times as many (default 2)"
    parser.add_argument("--error", type=float, default=2.0, metavar="PERCENT", help=error)
    sets = "how many sets of inputs are measured, each compiled anew (default 4)"
    parser.add_argument("--input-sets", type=int, default=4, metavar="N", help=sets)
    locate = "where results differ, find the first operator that departs, which compiles the program many times"
    parser.add_argument("--locate", action="store_true", help=locate)
    parser.add_argument("--times-only", action="store_true", help="do not look at single kernels after timing")
    runner = 'measure on the machine that this command reaches, such as "ssh gpu-box"'
    parser.add_argument("--runner", default="", metavar="COMMAND", help=runner)
    parser.add_argument("--runner-python", metavar="PYTHON", help="the interpreter of that machine (default python3)")
    against = "measure the target as of this git revision and in the work tree, alternating"
    parser.add_argument("--compare", metavar="REV", help=against)
    parser.add_argument("--history", action="store_true", help="measure nothing; show earlier results and their trend")
    parser.add_argument("--fail-on", default="", metavar="LIST", help="finding codes, such as slower-than-eager")
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")


def run(arguments: argparse.Namespace, cancellable: RunIt, make_options: MakeOptions) -> int:
    """Do the command; returns the exit status."""
    from inductoscope.protocol._version import __version__
    from inductoscope.protocol.report import Report
    from inductoscope.server import gate
    from inductoscope.server.planning import CheckError

    try:
        if arguments.history:
            return _history(arguments)
        stops = gate.parse(arguments.fail_on)
        checked = _measured(arguments, cancellable, plan_of(arguments, make_options))
    except (CheckError, gate.GateError) as error:
        if arguments.json:
            _print_json(Report(__version__, None, None, None, (), str(error)))
        _complain(str(error))
        return UNCHECKED
    for problem in checked.problems:
        _complain(problem)
    if checked.problems:
        return UNCHECKED
    found = (finding for target in checked.report.targets for finding in stops.considered(target))
    return FOUND if any(map(stops.names, found)) else OK


def plan_of(arguments: argparse.Namespace, make_options: MakeOptions) -> Plan:
    """What the command line asks for.  Raises `CheckError`."""
    from inductoscope.protocol.bench import BenchOptions, Detail, Locate, Passes
    from inductoscope.server.bench.measure import Plan
    from inductoscope.server.planning import CheckError

    if not 0 < arguments.error < 100:
        raise CheckError(f"--error {arguments.error:g} has to be a percentage above 0.")
    if arguments.input_sets < 1:
        raise CheckError(f"--input-sets {arguments.input_sets} has to be 1 or more.")
    bench = BenchOptions(
        passes=Passes.BOTH if arguments.backward else Passes.FORWARD,
        relative_error=arguments.error / 100,
        input_sets=arguments.input_sets,
        locate=Locate.IF_DIFFERENT if arguments.locate else Locate.NEVER,
        detail=Detail.TIMES if arguments.times_only else Detail.KERNELS,
    )
    options = replace(make_options(arguments), bench=bench)
    try:
        runner = tuple(shlex.split(arguments.runner))
    except ValueError as error:
        raise CheckError(f"--runner {arguments.runner} cannot be read: {error}.") from None
    return Plan(options, modes(arguments.mode), arguments.compare, runner, arguments.runner_python)


def modes(text: str) -> tuple[str | None, ...]:
    """The modes in a list with commas; without any the program's own.  Raises `CheckError`."""
    from inductoscope.protocol.bench import MODES
    from inductoscope.server.planning import CheckError

    named = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    unknown = [name for name in named if name not in MODES]
    if unknown:
        raise CheckError(f"--mode {', '.join(unknown)} is none of {', '.join(MODES)}.")
    return named or (None,)


def _measured(arguments: argparse.Namespace, cancellable: RunIt, plan: Plan) -> Checked:
    from inductoscope.server.bench.measure import Session
    from inductoscope.server.check import Watcher
    from inductoscope.server.text.terminal import Terminal
    from inductoscope.server.text.view import parts

    terminal = None if arguments.json else Terminal(parts("all" if arguments.verbose else ""))
    checked = cancellable(Session(plan, terminal.watcher if terminal is not None else Watcher()).run())
    if terminal is not None:
        terminal.end(checked.report)
    else:
        _print_json(checked.report)
    return checked


def _history(arguments: argparse.Namespace) -> int:
    """The earlier results of each file."""
    from inductoscope.server.bench import history
    from inductoscope.server.bench.history import HistoryError
    from inductoscope.server.text import trend
    from inductoscope.server.text.terminal import console, write

    entries: list[Entry] = []
    try:
        for path in arguments.paths:
            file = path.resolve()
            of_file = history.of_workspace(file).of(file)
            entries += [one for one in of_file if not arguments.target or one.target in arguments.target]
    except HistoryError as error:
        _complain(str(error))
        return UNCHECKED
    if arguments.json:
        _write(json.dumps({"history": _as_json(entries)}, indent=2, ensure_ascii=False) + "\n")
    for block in () if arguments.json else trend.shown(entries):
        write(console(), block)
    if not entries:
        _complain(f"There are no earlier results of {', '.join(map(str, arguments.paths))}.")
    return OK


def _as_json(entries: Sequence[Entry]) -> list[Any]:
    from inductoscope.protocol import codec

    return [codec.to_json(entry) for entry in entries]


def _print_json(report: Report) -> None:
    from inductoscope.protocol import codec
    from inductoscope.server.paths import relative_files

    _write(json.dumps(relative_files(codec.to_json(report), Path.cwd()), indent=2, ensure_ascii=False) + "\n")


def _write(text: str) -> None:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream of the interpreter
    sys.stdout.write(text)
    sys.stdout.flush()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"inductoscope: {sentence}\n")
