"""Read-only documents made of results: graphs, wrappers, a kernel's source and what became of it, and pages for people.

The address is `inductoscope-artifact:///FILE/TARGET/NAME`, so that the same kernel of the same target keeps its address
and an open view can be refreshed.  The slashes of FILE stay slashes: clients take percent-encoding apart and put it
together again, and one that does so with `%2F` arrives at another address.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, unquote, urlsplit

from inductoscope.protocol.report import KernelLanguage, TargetReport
from inductoscope.server import freshness, pages
from inductoscope.server.extensions import ARTIFACT_SCHEME
from inductoscope.server.features import (
    document,
    graph_documents,
    guard_page,
    kernel_documents,
    languages,
    references,
    timeline,
    wrapper_documents,
)
from inductoscope.server.features.graph_documents import GraphDocument
from inductoscope.server.features.kernel_documents import KernelDocument
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.features.references import DocumentLine, Known, ProgramLine, Reference
from inductoscope.server.features.wrapper_documents import WrapperDocument
from inductoscope.server.snapshot import Result, Snapshot, TargetView


class Page(enum.Enum):
    """Documents for people, by their names; each target has one of each."""

    REPORT = "report.md"
    GUARDS = "guards.md"
    TIMELINE = "timeline.md"


REPORT = Page.REPORT.value
Document: TypeAlias = "GraphDocument | KernelDocument | WrapperDocument | Page"

_CODES = "diagnostics"
"""In place of a target: the pages of finding codes."""

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
        file = f"/{quote(self.path.lstrip('/'))}" if self.path else ""
        return f"{ARTIFACT_SCHEME}://{file}/{quote(self.target, safe='')}/{quote(self.name, safe='')}"


def parse(uri: str) -> Address | None:
    """The address in a URI, or None when it is not one of ours."""
    parts = urlsplit(uri)
    pieces = parts.path.rsplit("/", 2)
    if parts.scheme != ARTIFACT_SCHEME or len(pieces) != 3:
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


def wrapper_address(view: TargetView, shown: WrapperDocument) -> Address:
    """Where a wrapper is shown."""
    return Address(view.target.file, view.target.name, shown.name)


def page_address(view: TargetView, page: Page) -> Address:
    """Where a page is shown."""
    return Address(view.target.file, view.target.name, page.value)


def page_of_code(code: str) -> Address:
    """Where the page of a finding code is shown."""
    return Address("", _CODES, f"{code}.md")


def is_page(address: Address) -> bool:
    """Whether the document is one for people."""
    return any(address.name == page.value for page in Page)


def moment(snapshot: Snapshot, address: Address) -> tuple[int, ...]:
    """Something that is cheap to know and stays as long as the text of a document certainly does."""
    view = snapshot.find(address.path, address.target)
    if view is None:
        return ()
    results = (*view.results, *((view.measured.result,) if view.measured else ()))
    return tuple(result.generation for result in results)


def revision(snapshot: Snapshot, address: Address) -> tuple[int | str, ...]:
    """Something that changes whenever the text of a document does, and otherwise only for pages."""
    found = _find(snapshot, address)
    match found.document if found is not None else None:
        case KernelDocument() | WrapperDocument() as shown:
            return (shown.revision,)
        case GraphDocument() as graph:
            return (hashlib.sha256(graph_documents.text(graph).encode("utf-8", "surrogatepass")).hexdigest(),)
        case _:
            return moment(snapshot, address)


def content(snapshot: Snapshot, address: Address) -> str:
    """The text of a document; a sentence when there is nothing to show yet."""
    if (address.path, address.target) == ("", _CODES):
        page = pages.page(address.name.removesuffix(".md"))
        return f"{page.markdown}\n" if page is not None else f"There is no page {address.name}.\n"
    view = snapshot.find(address.path, address.target)
    if view is None or (view.good or view.failed) is None:
        return f"Nothing is known of {address.target} now: open its file and check it.\n"
    found = _find(snapshot, address)
    if found is None:
        return f"{address.target} has no kernel, graph or wrapper of this name any more.\n"
    report = found.result.report
    match found.document:
        case GraphDocument() as graph:
            return graph_documents.text(graph)
        case WrapperDocument() as shown:
            return shown.wrapper.source
        case KernelDocument() as kernel:
            return kernel_documents.text(kernel, report)
        case Page.REPORT:
            blocks = document.document(view, report, snapshot.now - found.result.at)
        case Page.GUARDS:
            blocks = guard_page.document(report)
        case Page.TIMELINE:
            blocks = timeline.document(report)
    return write(blocks, Markup.MARKDOWN) + "\n"


def origins(snapshot: Snapshot, address: Address, line: int) -> tuple[Spot, ...]:
    """Where a line of a document comes from: lines of the program, and the line of the kernel's source."""
    found = _find(snapshot, address)
    match found.document if found is not None else None:
        case GraphDocument() as graph if found is not None:
            place = graph_documents.origin(graph, line)
            return tuple(_program_spots(snapshot, found.result, [place] if place is not None else []))
        case KernelDocument() as shown if found is not None:
            return tuple(_kernel_origins(snapshot, found, shown, line))
        case _:
            return ()


def named(snapshot: Snapshot, address: Address, text: str) -> Iterator[tuple[Reference, Spot]]:
    """What the text of a document names, with the place; lines of the program that were edited since are left out."""
    found = _find(snapshot, address)
    if found is None:
        return
    known = _known(found)
    for reference in references.references(languages.of(address.name), text, known):
        match reference.to:
            case DocumentLine(name, line) if (name, line) != (address.name, 1):
                yield reference, Spot(Address(address.path, address.target, name).uri, None, line)
            case ProgramLine(file, line):
                for spot in _program_spots(snapshot, found.result, [(file, line)]):
                    yield reference, spot
            case _:
                pass


@dataclass(frozen=True)
class _Found:
    """A document, and the result that it is part of."""

    view: TargetView
    result: Result
    document: Document


def _find(snapshot: Snapshot, address: Address) -> _Found | None:
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    if view is None or result is None:
        return None
    report, name = result.report, address.name
    pages = {page.value: page for page in Page}
    shown: Document | None = (
        pages.get(name)
        or graph_documents.find(report, name)
        or wrapper_documents.find(report, name)
        or kernel_documents.find(report, name)
    )
    return _Found(view, result, shown) if shown is not None else None


def _kernel_origins(snapshot: Snapshot, found: _Found, shown: KernelDocument, line: int) -> Iterator[Spot]:
    report = found.result.report
    kernel_line = kernel_documents.lines(shown, report).kernel.get(line)
    if kernel_line is None:
        return
    places = kernel_documents.model_lines(shown.kernel).get(kernel_line, ())
    yield from _program_spots(snapshot, found.result, [(place.file, place.line) for place in places])
    if shown.config is not None:
        source = next(one for one in kernel_documents.of_kernel(report, shown.kernel) if one.config is None)
        yield Spot(kernel_address(found.view, source).uri, None, kernel_line)


def _program_spots(snapshot: Snapshot, result: Result, places: Iterable[tuple[str, int]]) -> Iterator[Spot]:
    """The places as they are on screen now, as far as they still are."""
    for file, line in places:
        now = snapshot.now_at(result, file, line)
        if now is not None:
            yield Spot(None, file, now)


def _known(found: _Found) -> Known:
    report = found.result.report
    listed = kernel_documents.listed(report)
    sources = {one.kernel.name: one.name for one in reversed(listed) if one.config is None and _is_generated(one)}
    texts = _other_texts(found.document, listed) if isinstance(found.document, KernelDocument) else {}
    return Known(report.file, references.files_by_name(_files(report)), sources, texts)


def _other_texts(shown: KernelDocument, listed: Iterable[KernelDocument]) -> dict[str, str]:
    """The documents that a text of a kernel may speak of: the kernel's source, and the PTX it was made of."""
    found: dict[str, str] = {}
    for one in listed:
        if one.kernel == shown.kernel and one.config is None:
            found.setdefault("kernel", one.name)
        elif one.kernel == shown.kernel and one.config == shown.config and one.stage == "ptx":
            found.setdefault("PTX", one.name)
    return found


def _is_generated(shown: KernelDocument) -> bool:
    return shown.kernel.language is not KernelLanguage.EXTERN


def _files(report: TargetReport) -> Iterator[str]:
    """The files of the program that its documents speak of."""
    yield report.file
    yield from (file for file, _ in freshness.mentioned(report))
    yield from (node.file for graph in report.fx_graphs for node in graph.nodes if node.file is not None)
    yield from (guard.file for guard in report.guards if guard.file is not None)
