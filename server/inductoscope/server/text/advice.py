"""The last line of a check: what to look at first, and which commands show more."""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import Finding, Report, Severity, Status
from inductoscope.server.text.view import Part, View

_LOUDEST = (Severity.ERROR, Severity.WARNING, Severity.INFORMATION, Severity.HINT)


def next_step(report: Report, view: View) -> str | None:
    """What to do next; None where nothing was compiled, as the reason is said already."""
    compiled = [target for target in report.targets if target.status in (Status.COMPILED, Status.PARTIAL)]
    if not compiled:
        return None
    findings = [finding for target in report.targets for finding in target.findings]
    parts = [*_first(findings, view), *_more(report, view)]
    return f"next: {'; '.join(parts)}" if parts else None


def _first(findings: list[Finding], view: View) -> Iterator[str]:
    """The loudest finding that the program's author can do something about."""
    mendable = [finding for finding in findings if finding.severity is not Severity.HINT]
    if mendable:
        worst = min(mendable, key=lambda finding: _LOUDEST.index(finding.severity))
        of = f" first, of {len(findings)} findings" if len(findings) > 1 else ""
        yield f"look at {worst.code} {view.place(worst.file, worst.line)}{of}"


def _more(report: Report, view: View) -> Iterator[str]:
    kernels = any(kernel.source for target in report.targets for kernel in target.kernels)
    if kernels and not view.has(Part.KERNELS):
        yield "--show kernels prints the generated code"
    files = list(dict.fromkeys(view.file(target.file) for target in report.targets))
    if len(files) == 1:
        yield f"`inductoscope watch {files[0]}` tells what each edit changes"
