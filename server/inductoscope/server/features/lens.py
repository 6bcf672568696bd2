"""What stands above each target: what became of it, and what it would gain."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inductoscope.protocol.report import Status
from inductoscope.server import causes, resting, whole_calls, words
from inductoscope.server.features.commands import Command, CommandName, kernels_of, obstacle
from inductoscope.server.settings import RunMode, Trust
from inductoscope.server.snapshot import Activity, Snapshot, TargetView

_COMPILED = {Status.COMPILED, Status.PARTIAL}
_PLAIN = {"", causes.OPENED, causes.ASKED_FOR}
"""Causes of a run that whoever looks at it knows."""
_TITLES = {
    CommandName.SHOW_KERNELS: "Kernels",
    CommandName.SHOW_GUARDS: "Guards",
    CommandName.SHOW_TIMELINE: "Timeline",
}


@dataclass(frozen=True)
class Lens:
    """A few words above a line (1-based); `command` is what clicking them does, `place` which of the line's it is."""

    line: int
    title: str
    command: Command | None
    place: int = 0


def lenses(snapshot: Snapshot, path: str) -> tuple[Lens, ...]:
    """The lenses of an open file, in the order of the file."""
    found: list[Lens] = []
    for view in snapshot.targets_in(path):
        line = snapshot.line_of(view)
        if line is not None:
            found += _of(snapshot, view, line)
    return tuple(found)


def summary(snapshot: Snapshot, view: TargetView) -> str:
    """What became of a target, in one line."""
    settled = view.settled
    doing = _doing(view)
    if settled is None:
        return doing or _not_checked(snapshot, view)
    if doing:
        notes = [doing]
    elif _rests(snapshot, view):
        notes = [f"{words.count(view.crashes, 'crash', 'crashes')} in a row, so it rests: click to retry"]
    elif snapshot.is_stale(settled):
        notes = ["edited since"]
    else:
        notes = _difference(view)
        if settled.report.cached is not None:
            notes = [*notes, "cached"]
    if view.failed is not None and view.good is not None:
        notes.append("what is shown below is from the last run that came through")
    return words.summary(settled.report) + (f" ({'; '.join(notes)})" if notes else "")


def _of(snapshot: Snapshot, view: TargetView, line: int) -> list[Lens]:
    def lens(name: CommandName, title: str) -> Lens:
        possible = obstacle(snapshot, view, name) is None
        return Lens(line, title, Command(name, title, view.target.file, view.target.name) if possible else None)

    shows_kernels = kernels_of(view) and not _rests(snapshot, view)
    main = CommandName.SHOW_KERNELS if shows_kernels else CommandName.CHECK
    found = [lens(main, summary(snapshot, view))]
    expected = whole_calls.gain(view.settled.report) if view.settled is not None else None
    if expected is not None:
        found.append(lens(CommandName.SHOW_KERNELS, expected))
    busy = view.activity is Activity.MEASURING
    if busy or view.measured is not None or obstacle(snapshot, view, CommandName.BENCHMARK) is None:
        found.append(lens(CommandName.BENCHMARK, _benchmark(snapshot, view)))
    if view.good is not None and view.good.report.status in _COMPILED:
        shown = [CommandName.SHOW_KERNELS] if kernels_of(view) else []
        found += [lens(name, _TITLES[name]) for name in (*shown, CommandName.SHOW_GUARDS, CommandName.SHOW_TIMELINE)]
    return [replace(item, place=place) for place, item in enumerate(found)]


def _rests(snapshot: Snapshot, view: TargetView) -> bool:
    return resting.left_s(view, snapshot.now) > 0


def _difference(view: TargetView) -> list[str]:
    """What the last edit changed."""
    before, after = view.before, view.settled
    if before is None or after is None or before.report.device != after.report.device:
        return []
    if not {before.report.status, after.report.status} <= _COMPILED:
        return []
    changes = [words.changes(before.report, after.report), whole_calls.change(before.report, after.report) or ""]
    told = ", ".join(filter(None, changes))
    return [f"since the last run: {told}"] if told else []


def _doing(view: TargetView) -> str | None:
    """What is going on with a target, and why where that is not plain."""
    if view.activity is Activity.CHECKING:
        return "checking…" if view.cause in _PLAIN else f"checking: {view.cause}…"
    return "waiting to be checked…" if view.activity is Activity.WAITING else None


def _not_checked(snapshot: Snapshot, view: TargetView) -> str:
    if snapshot.trust is Trust.UNTRUSTED:
        return "not checked: this workspace is not trusted"
    if view.scanned.inputs is None:
        return "no example inputs"
    if snapshot.settings_of(view.target.file).run is RunMode.MANUAL:
        return "not checked yet: click to check"
    return "not checked yet"


def _benchmark(snapshot: Snapshot, view: TargetView) -> str:
    if view.activity is Activity.MEASURING:
        return "measuring…"
    measured = view.measured
    if measured is None:
        return "Benchmark compiled vs eager"
    if measured.benchmark is None:
        why = measured.failure.message if measured.failure else measured.result.report.message
        return "Benchmark failed" + (f": {words.first_sentence(why)}" if why else "")
    text = words.first_sentence(words.benchmark(measured.benchmark))  # all of it is in the target's report
    return f"{text} (edited since)" if snapshot.is_stale(measured.result) else text
