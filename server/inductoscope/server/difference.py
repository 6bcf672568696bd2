"""What became different between two reports of one target, wherever its lines went meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inductoscope.protocol.report import Finding, TargetReport
from inductoscope.server import tally

Moved = Callable[[str, int], "int | None"]
"""Where a line of the older text of a file is in the newer one, or None when it was edited."""


@dataclass(frozen=True)
class Difference:
    """Findings that are gone (with their old lines) and new ones; `kernels` is how many of the newer report's
    kernels the older one does not have, by their source."""

    before: TargetReport
    after: TargetReport
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    kernels: int

    @property
    def is_nothing(self) -> bool:
        """Whether both say the same."""
        same = tally.of(self.before) == tally.of(self.after) and self.before.status is self.after.status
        return same and not (self.gone or self.new or self.kernels)


def between(before: TargetReport, after: TargetReport, moved: Moved) -> Difference:
    """The difference from one report to a later one."""
    gone, new = _unmatched(before.findings, after.findings, moved)
    old = Counter(_sources(before))
    return Difference(before, after, gone, new, sum((Counter(_sources(after)) - old).values()))


def _sources(report: TargetReport) -> list[str]:
    return [kernel.source or kernel.name for kernel in tally.first_kernels(report)]


def _unmatched(
    old: Iterable[Finding], new: Iterable[Finding], moved: Moved
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Those that only one side has: matched by place first, then by what is said, as an edited line has no place."""
    gone, fresh = list(old), list(new)
    for is_same in (_same_place, _same_words):
        for finding in list(gone):
            match = next((other for other in fresh if is_same(finding, other, moved)), None)
            if match is not None:
                gone.remove(finding)
                fresh.remove(match)
    return tuple(gone), tuple(fresh)


def _same_place(old: Finding, new: Finding, moved: Moved) -> bool:
    return _kind(old) == _kind(new) and moved(old.file, old.line) == new.line


def _same_words(old: Finding, new: Finding, _: Moved) -> bool:
    return _kind(old) == _kind(new) and (old.function, old.message) == (new.function, new.message)


def _kind(finding: Finding) -> tuple[str, str | None, str, str | None]:
    return (finding.code, finding.id, finding.file, finding.guard_family)
