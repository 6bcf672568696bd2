"""Which kernels a line went into, and which fusion group each of them is."""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import FusionGroup, Kernel, KernelLanguage, Phase, TargetReport
from inductoscope.server import pairing


@dataclass(frozen=True)
class Launched:
    """A kernel, its group where there is one, and how often the line's graphs launch it."""

    kernel: Kernel
    group: FusionGroup | None
    times: int = 1


def on_line(report: TargetReport, path: str, line: int) -> list[Launched]:
    """The different kernels that a line went into: forward before backward, generated ones before library calls."""
    found: dict[tuple[object, ...], Launched] = {}
    for launched in (Launched(kernel, group) for kernel, group in pairing.with_groups(report)):
        if not _touches(launched, path, line):
            continue
        kernel = launched.kernel
        key = (kernel.name, kernel.phase, kernel.source)
        before = found.get(key)
        found[key] = launched if before is None else Launched(before.kernel, before.group, before.times + 1)
    return sorted(found.values(), key=_rank)


def _touches(launched: Launched, path: str, line: int) -> bool:
    places = {(place.file, place.line) for place in launched.kernel.lines}
    places |= {(mapping.file, mapping.line) for mapping in launched.kernel.line_map}
    return (path, line) in places


def _rank(launched: Launched) -> tuple[bool, bool]:
    kernel = launched.kernel
    return (kernel.phase is Phase.BACKWARD, kernel.language is KernelLanguage.EXTERN)
