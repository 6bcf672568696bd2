"""Where the time of a run went, made readable: a tree with shares, and for each compilation what it spent on what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inductoscope.protocol.report import LoweringOutcome, PhaseTime, TargetReport
from inductoscope.server import words

OURS = "inductoscope"
"""The phase of what only observing costs."""

LEAST_SHARE = 0.005
"""Phases that take less of the run are not listed, but counted for what they are part of."""

_INDUCTOR = ("inductor", "inductor backward", "pre-grad passes", "unchanged graph")


@dataclass(frozen=True)
class Row:
    """A line of the tree: how deep it stands, what it is, milliseconds and the share of the run."""

    depth: int
    name: str
    ms: float
    share: float


@dataclass(frozen=True)
class Compilation:
    """One compilation of a function, in milliseconds: the whole, and what torch's parts took of it.

    The parts add up to `ms` with `ours`, which is what observing cost.  `dynamo` includes guards.
    """

    graph: str
    ms: float
    dynamo: float
    autograd: float
    inductor: float
    ours: float


def rows(report: TargetReport, least: float = LEAST_SHARE) -> tuple[Row, ...]:
    """The tree, depth first, with a row for what a phase takes beyond its parts; `least` is the smallest share told."""
    phases, total = report.phases, total_ms(report)
    functions = {graph.id: graph.function for graph in report.graphs}
    parts = _parts(phases)

    def below(indices: Sequence[int], depth: int) -> Iterator[Row]:
        for index in indices:
            phase = phases[index]
            if total and phase.ms / total >= least:
                yield Row(depth, _title(phase, functions), phase.ms, phase.ms / total)
                shown = list(below(parts.get(index, ()), depth + 1))
                yield from shown
                rest = phase.ms - sum(row.ms for row in shown if row.depth == depth + 1)
                if shown and rest / total >= least:
                    yield Row(depth + 1, "the rest", rest, rest / total)

    return tuple(below(parts.get(None, ()), 0))


def total_ms(report: TargetReport) -> float:
    """How long the run took altogether, 0 where nothing was timed."""
    return report.run_ms or sum(phase.ms for phase in report.phases if phase.parent is None)


def ours_ms(report: TargetReport) -> float:
    """What only observing cost."""
    return sum(phase.ms for phase in report.phases if phase.name == OURS)


def compilations(report: TargetReport) -> tuple[Compilation, ...]:
    """Every compilation, in order; one that began anew is one."""
    found: dict[str, Compilation] = {}
    phases, parts = report.phases, _parts(report.phases)
    for index, phase in enumerate(phases):
        if phase.name == "compile" and phase.graph is not None:
            one = _compilation(phases, parts, index)
            before = found.get(phase.graph)
            found[phase.graph] = one if before is None else _both(before, one)
    return tuple(found.values())


def described(one: Compilation) -> str:
    """`compiled in 812 ms: Dynamo 210 ms, AOTAutograd 120 ms, Inductor 480 ms`."""
    parts = (("Dynamo", one.dynamo), ("AOTAutograd", one.autograd), ("Inductor", one.inductor), (OURS, one.ours))
    told = ", ".join(f"{name} {time(ms)}" for name, ms in parts if ms >= 0.5)
    return f"compiled in {time(one.ms)}" + (f": {told}" if told else "")


def lowerings(report: TargetReport) -> str | None:
    """`3 of 4 graphs unchanged since an earlier run, 1 lowered`; None where each one had to be lowered."""
    unchanged = sum(one.outcome is LoweringOutcome.UNCHANGED for one in report.lowerings)
    if not unchanged:
        return None
    lowered = len(report.lowerings) - unchanged
    graphs = "graph" if len(report.lowerings) == 1 else "graphs"
    more = f", {lowered} lowered" if lowered else ""
    return f"{unchanged} of {len(report.lowerings)} {graphs} unchanged since an earlier run{more}"


def always_lowered(report: TargetReport) -> Iterator[str]:
    """The graphs that every run lowers, a phrase each, with what keeps their facts from being used again."""
    for one in report.lowerings:
        if one.why is not None:
            yield f"{one.graph} is lowered by every run: {one.why}"


def time(ms: float) -> str:
    """Milliseconds for people."""
    return words.duration(ms * 1e3)


def _title(phase: PhaseTime, functions: dict[str, str]) -> str:
    if phase.name not in ("compile", "eager execution") or phase.graph is None:
        return phase.name
    function = functions.get(phase.graph)
    return f"{phase.name} {phase.graph}{f' ({function})' if function else ''}"


def _parts(phases: Sequence[PhaseTime]) -> dict[int | None, list[int]]:
    parts: dict[int | None, list[int]] = {}
    for index, phase in enumerate(phases):
        parts.setdefault(phase.parent, []).append(index)
    return parts


def _compilation(phases: Sequence[PhaseTime], parts: dict[int | None, list[int]], index: int) -> Compilation:
    """A compilation that another one is part of (a graph that runs while a constant is folded) counts for both."""
    taken = {"dynamo": 0.0, "autograd": 0.0, "inductor": 0.0, "ours": 0.0}

    def add(at: int, kind: str) -> None:
        phase = phases[at]
        kind = _kind(phase.name, kind)
        inside = parts.get(at, [])
        taken[kind] += phase.ms - sum(phases[part].ms for part in inside)
        for part in inside:
            add(part, kind)

    add(index, "dynamo")
    return Compilation(phases[index].graph or "", phases[index].ms, **taken)


def _kind(name: str, around: str) -> str:
    if name == OURS:
        return "ours"
    if name in _INDUCTOR:
        return "inductor"
    return "autograd" if name in ("backend", "aot autograd") else around


def _both(first: Compilation, second: Compilation) -> Compilation:
    return Compilation(
        first.graph,
        first.ms + second.ms,
        first.dynamo + second.dynamo,
        first.autograd + second.autograd,
        first.inductor + second.inductor,
        first.ours + second.ours,
    )
