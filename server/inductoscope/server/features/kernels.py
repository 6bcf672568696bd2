"""Which kernels a line went into, and which fusion group each of them is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import FusionGroup, Kernel, KernelLanguage, Phase, TargetReport


@dataclass(frozen=True)
class Launched:
    """A kernel, its group where there is one, and how often the line's graphs launch it."""

    kernel: Kernel
    group: FusionGroup | None
    times: int = 1


def on_line(report: TargetReport, path: str, line: int) -> list[Launched]:
    """The different kernels that a line went into: forward before backward, generated ones before library calls."""
    found: dict[tuple[object, ...], Launched] = {}
    for launched in _with_groups(report):
        if not _touches(launched, path, line):
            continue
        kernel = launched.kernel
        key = (kernel.name, kernel.phase, kernel.source)
        before = found.get(key)
        found[key] = launched if before is None else Launched(before.kernel, before.group, before.times + 1)
    return sorted(found.values(), key=_rank)


def _with_groups(report: TargetReport) -> Iterator[Launched]:
    """Kernels and groups of a graph come in the same order, so the same name in the same graph meets its own group."""
    groups: dict[tuple[str, str], list[FusionGroup]] = defaultdict(list)
    for group in report.fusion_groups:
        graph, _, _ = group.id.rpartition(":")
        groups[graph, group.kernel].append(group)
    for kernel in report.kernels:
        waiting = groups[kernel.graph, kernel.name]
        yield Launched(kernel, waiting.pop(0) if waiting else None)


def _touches(launched: Launched, path: str, line: int) -> bool:
    places = {(place.file, place.line) for place in launched.kernel.lines}
    places |= {(mapping.file, mapping.line) for mapping in launched.kernel.line_map}
    return (path, line) in places


def _rank(launched: Launched) -> tuple[bool, bool]:
    kernel = launched.kernel
    return (kernel.phase is Phase.BACKWARD, kernel.language is KernelLanguage.EXTERN)
