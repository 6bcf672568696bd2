"""Which findings are shown in which file.

Merges what the scan and the runs of all targets say: a finding can be in another file than its target, two targets can
meet the same one, and a run that is still going repeats what the last one said.  Knows no LSP types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inductoscope.protocol.report import Finding
from inductoscope.server import missed_fusion
from inductoscope.server.snapshot import Result, Snapshot, TargetView


@dataclass(frozen=True)
class Shown:
    """A finding as shown: with the lines of the screen, the target and device it was found for."""

    finding: Finding
    target: str | None = None
    device: str | None = None


def merge(snapshot: Snapshot) -> Mapping[str, tuple[Shown, ...]]:
    """What to show by path, in the order of the file; paths with nothing to show are absent."""
    by_path: dict[str, dict[tuple[object, ...], Shown]] = {}
    for shown in _all(snapshot):
        finding = shown.finding
        if snapshot.settings_of(finding.file).publishes(finding.code):
            by_path.setdefault(finding.file, {}).setdefault(_identity(finding), shown)
    return {path: tuple(sorted(found.values(), key=_order)) for path, found in by_path.items()}


def of_target(snapshot: Snapshot, view: TargetView) -> Iterator[Shown]:
    """What is shown for a target.

    A newer run has the last word on a line: what an older one said of the same kind there is left out.
    """
    said: set[tuple[object, ...]] = set()
    for result in view.results:
        told = (*result.report.findings, *_on_request(snapshot, view, result))
        moved = [found for finding in told if (found := snapshot.moved(result, finding)) is not None]
        for finding in moved:
            if _kind_and_place(finding) not in said:
                yield Shown(finding, view.target.name, result.report.device)
        said.update(map(_kind_and_place, moved))


def _all(snapshot: Snapshot) -> Iterator[Shown]:
    for file in snapshot.files.values():
        yield from (Shown(finding) for finding in file.scan.findings)
    for view in snapshot.targets.values():
        yield from of_target(snapshot, view)


def _on_request(snapshot: Snapshot, view: TargetView, result: Result) -> Iterator[Finding]:
    """What is told only to whoever asks for its code."""
    if snapshot.settings_of(view.target.file).publishes(missed_fusion.CODE):
        texts = result.texts
        yield from missed_fusion.findings(
            result.report, lambda file, line: texts[file].line(line) if file in texts else ""
        )


def _kind_and_place(finding: Finding) -> tuple[object, ...]:
    return (finding.code, finding.id, finding.file, finding.line)


def _identity(finding: Finding) -> tuple[object, ...]:
    return (*_kind_and_place(finding), finding.column, finding.message)


def _order(shown: Shown) -> tuple[int, int, str]:
    return (shown.finding.line, shown.finding.column, shown.finding.code)
