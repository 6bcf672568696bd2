"""Which kernel each fusion group became: the report lists both in call order, and a name may be called many times."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from inductoscope.protocol.report import FusionGroup, Kernel, TargetReport


def with_groups(report: TargetReport) -> Iterator[tuple[Kernel, FusionGroup | None]]:
    """Each kernel with its group where there is one; the nth call of a name in a graph is that name's nth group.

    Forward and backward passes of a graph share its id, and library calls of both share their names.
    """
    waiting: defaultdict[tuple[str, str], deque[FusionGroup]] = defaultdict(deque)
    for group in report.fusion_groups:
        graph, _, _ = group.id.rpartition(":")
        waiting[graph, group.kernel].append(group)
    for kernel in report.kernels:
        groups = waiting[kernel.graph, kernel.name]
        yield kernel, groups.popleft() if groups else None


def by_group(report: TargetReport) -> dict[str, Kernel]:
    """Kernels by the id of the group that they were made of."""
    return {group.id: kernel for kernel, group in with_groups(report) if group is not None}
