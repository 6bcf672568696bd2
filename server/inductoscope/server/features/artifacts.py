"""Read-only documents made of results: graphs, a kernel's source and what became of it, a target's report.

The address is `inductoscope-artifact:/FILE/TARGET/NAME`, so that the same kernel of the same target keeps its address
and an open view can be refreshed.  The slashes of FILE stay slashes: clients take percent-encoding apart and put it
together again, and one that does so with `%2F` arrives at another address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from inductoscope.server.features import document, graph_documents, kernel_documents
from inductoscope.server.features.graph_documents import GraphDocument
from inductoscope.server.features.kernel_documents import KernelDocument
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.snapshot import Result, Snapshot, TargetView

SCHEME = "inductoscope-artifact"
REPORT = "report.md"
_DRIVE = re.compile(r"/[A-Za-z]:")


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


@dataclass(frozen=True)
class Spot:
    """A line (1-based) of a document or of a file of the program."""

    uri: str | None
    path: str | None
    line: int


def kernel_address(view: TargetView, shown: KernelDocument) -> Address:
    """Where a document of a kernel is shown."""
    return Address(view.target.file, view.target.name, shown.name)


def graph_address(view: TargetView, shown: GraphDocument) -> Address:
    """Where a graph is shown."""
    return Address(view.target.file, view.target.name, shown.name)


def report_address(view: TargetView) -> Address:
    """Where a target's report is shown."""
    return Address(view.target.file, view.target.name, REPORT)


def revision(snapshot: Snapshot, address: Address) -> tuple[int | str, ...]:
    """Something that changes whenever the text of a document may."""
    view = snapshot.find(address.path, address.target)
    if view is None:
        return ()
    shown = _kernel_document(view, address)
    if shown is not None:
        return (shown.revision,)
    results = (*view.results, *((view.measured.result,) if view.measured else ()))
    return tuple(result.generation for result in results)


def content(snapshot: Snapshot, address: Address) -> str:
    """The text of a document; a sentence when there is nothing to show yet."""
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    if view is None or result is None:
        return f"Nothing is known of {address.target} now: open its file and check it.\n"
    if address.name == REPORT:
        blocks = document.document(view, result.report, snapshot.now - result.at)
        return write(blocks, Markup.MARKDOWN) + "\n"
    graph = graph_documents.find(result.report, address.name)
    if graph is not None:
        return graph_documents.text(graph)
    shown = kernel_documents.find(result.report, address.name)
    if shown is None:
        return f"{address.target} has no kernel or graph of this name any more.\n"
    return kernel_documents.text(shown, result.report)


def origins(snapshot: Snapshot, address: Address, line: int) -> tuple[Spot, ...]:
    """Where a line of a document comes from: lines of the program, and the line of the kernel's source."""
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    graph = graph_documents.find(result.report, address.name) if result is not None else None
    if result is not None and graph is not None:
        return tuple(_program_spot(snapshot, result, graph_documents.origin(graph, line)))
    shown = kernel_documents.find(result.report, address.name) if result is not None else None
    if view is None or result is None or shown is None:
        return ()
    kernel_line = kernel_documents.lines(shown, result.report).kernel.get(line)
    if kernel_line is None:
        return ()
    spots = []
    for place in kernel_documents.model_lines(shown.kernel).get(kernel_line, ()):
        now = snapshot.now_at(result, place.file, place.line)
        if now is not None:
            spots.append(Spot(None, place.file, now))
    if shown.config is not None:
        source = next(one for one in kernel_documents.of_kernel(result.report, shown.kernel) if one.config is None)
        spots.append(Spot(kernel_address(view, source).uri, None, kernel_line))
    return tuple(spots)


def _program_spot(snapshot: Snapshot, result: Result, place: tuple[str, int] | None) -> Iterator[Spot]:
    """The place as it is on screen now, if it still is."""
    now = snapshot.now_at(result, *place) if place is not None else None
    if place is not None and now is not None:
        yield Spot(None, place[0], now)


def _kernel_document(view: TargetView, address: Address) -> KernelDocument | None:
    result = view.good or view.failed
    return kernel_documents.find(result.report, address.name) if result is not None else None
