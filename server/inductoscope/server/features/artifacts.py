"""Read-only documents made of results: a kernel's source, a target's report.

The address is `inductoscope-artifact:/FILE/TARGET/NAME`, so that the same kernel of the same target keeps its address
and an open view can be refreshed.  The slashes of FILE stay slashes: clients take percent-encoding apart and put it
together again, and one that does so with `%2F` arrives at another address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from inductoscope.protocol.report import Kernel, KernelLanguage, TargetReport
from inductoscope.server import words
from inductoscope.server.features.markup import Block, Code, Heading, Markup, Points, Words, write
from inductoscope.server.snapshot import Result, Snapshot, TargetView

SCHEME = "inductoscope-artifact"
REPORT = "report.md"
_DRIVE = re.compile(r"/[A-Za-z]:")
_SUFFIX = {KernelLanguage.TRITON: ".py", KernelLanguage.CPP: ".cpp", KernelLanguage.EXTERN: ".txt"}


@dataclass(frozen=True)
class Address:
    """What a document is made of."""

    path: str
    target: str
    name: str

    @property
    def uri(self) -> str:
        """The address as a URI."""
        file = quote(self.path.lstrip("/"))
        return f"{SCHEME}:/{file}/{quote(self.target, safe='')}/{quote(self.name, safe='')}"


def parse(uri: str) -> Address | None:
    """The address in a URI, or None when it is not one of ours."""
    parts = urlsplit(uri)
    pieces = parts.path.rsplit("/", 2)
    if parts.scheme != SCHEME or len(pieces) != 3:
        return None
    path, target, name = map(unquote, pieces)
    return Address(path[1:] if _DRIVE.match(path) else path, target, name)


def kernel_address(view: TargetView, kernel: Kernel) -> Address:
    """Where a kernel's source is shown."""
    return Address(view.target.file, view.target.name, kernel.name + _SUFFIX[kernel.language])


def report_address(view: TargetView) -> Address:
    """Where a target's report is shown."""
    return Address(view.target.file, view.target.name, REPORT)


def revision(snapshot: Snapshot, address: Address) -> tuple[int, ...]:
    """Something that changes whenever the text of a document may."""
    view = snapshot.find(address.path, address.target)
    if view is None:
        return ()
    results = (*view.results, *((view.measured.result,) if view.measured else ()))
    return tuple(result.generation for result in results)


def content(snapshot: Snapshot, address: Address) -> str:
    """The text of a document; a sentence when there is nothing to show yet."""
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    if view is None or result is None:
        return f"Nothing is known of {address.target} now: open its file and check it.\n"
    if address.name == REPORT:
        return write(_report(snapshot, view, result), Markup.MARKDOWN) + "\n"
    for kernel in result.report.kernels:
        if kernel_address(view, kernel).name == address.name:
            return kernel.source or f"{kernel.name} is a library call: there is no generated source.\n"
    return f"{address.target} has no kernel of this name any more.\n"


def _report(snapshot: Snapshot, view: TargetView, result: Result) -> list[Block]:
    report = result.report
    blocks: list[Block] = [
        Heading(view.target.name),
        Words(words.summary(report) + f" ({words.age(snapshot.now - result.at)})"),
    ]
    if view.measured is not None and view.measured.benchmark is not None:
        blocks.append(Words(words.benchmark(view.measured.benchmark)))
    if report.breaks:
        blocks += [Heading("Graph breaks"), Points(tuple(f"line {b.line}: {b.reason}" for b in report.breaks))]
    if report.kernels:
        blocks += [Heading("Kernels"), Points(tuple(_kernel_line(kernel) for kernel in report.kernels))]
        blocks += _sources(report)
    return blocks


def _kernel_line(kernel: Kernel) -> str:
    lines = ", ".join(str(line) for line in sorted({place.line for place in kernel.lines}))
    parts = [kernel.name + (f" (lines {lines})" if lines else "")]
    if kernel.predicted is not None:
        parts.append(words.predicted(kernel.predicted))
    if kernel.resources is not None:
        parts.append(words.resources(kernel.resources))
    return "; ".join(parts)


def _sources(report: TargetReport) -> list[Block]:
    blocks: list[Block] = []
    for kernel in report.kernels:
        if kernel.source:
            language = "python" if kernel.language is KernelLanguage.TRITON else "cpp"
            blocks += [Heading(kernel.name), Code(language, kernel.source.rstrip("\n"))]
    return blocks
