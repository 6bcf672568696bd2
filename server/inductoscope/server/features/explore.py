"""All facts of a document, for panels and trees: see `inductoscope/explore` in `docs/lsp-extensions.md`."""

from __future__ import annotations

from dataclasses import replace

from inductoscope.protocol.report import TargetReport
from inductoscope.server import freshness
from inductoscope.server.assembly.line_tables import LineTable
from inductoscope.server.extensions import (
    Explored,
    ExploredTarget,
    ExploreState,
    GraphDocumentFact,
    KernelDocumentFact,
    LinesResult,
    PageFact,
    ProgramLine,
    WrapperDocumentFact,
)
from inductoscope.server.features import (
    artifacts,
    graph_documents,
    kernel_documents,
    languages,
    lens,
    status,
    tree,
    wrapper_documents,
)
from inductoscope.server.features.artifacts import Address, Page
from inductoscope.server.features.graph_documents import GraphDocument
from inductoscope.server.features.kernel_documents import KernelDocument
from inductoscope.server.features.wrapper_documents import WrapperDocument
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Snapshot, TargetView


def explore(snapshot: Snapshot, path: str) -> Explored:
    """The answer for a file."""
    targets = tuple(_target(snapshot, view, path) for view in snapshot.targets_in(path))
    state, message = _state(snapshot, path, targets)
    return Explored(state, message, targets)


def _state(snapshot: Snapshot, path: str, targets: tuple[ExploredTarget, ...]) -> tuple[ExploreState, str | None]:
    file = snapshot.files.get(path)
    if file is None:
        return ExploreState.CLOSED, "The file is not open: open it to see what becomes of it."
    if any(target.report is not None for target in targets):
        return ExploreState.READY, None
    if snapshot.trust is Trust.UNTRUSTED:
        return (
            ExploreState.UNTRUSTED,
            "This workspace is not trusted, so none of its code is run: trust it to see more.",
        )
    if snapshot.environment.problem is not None:
        return ExploreState.ERROR, snapshot.environment.problem
    if targets:
        return ExploreState.READY, None
    broken = next((finding.message for finding in file.scan.findings if finding.code == "scan-error"), None)
    if broken is not None:
        return ExploreState.ERROR, f"The file cannot be read as Python: {broken}"
    nothing = (
        "There is nothing to compile here: no torch.compile, no Model with get_inputs(), no `# inductoscope:` comment."
    )
    return ExploreState.EMPTY, nothing


def _target(snapshot: Snapshot, view: TargetView, path: str) -> ExploredTarget:
    said = ExploredTarget(
        name=view.target.name,
        line=snapshot.line_of(view),
        state=status.state(view),
        summary=lens.summary(snapshot, view),
        stale=False,
        age_s=None,
        report=None,
    )
    result = view.good or view.failed
    if result is None:
        return said
    report = result.report
    lines = {line for file, line in freshness.mentioned(report) if file == path}
    places = {line: snapshot.now_at(result, path, line) for line in sorted(lines)}
    return replace(
        said,
        stale=snapshot.is_stale(result),
        age_s=round(snapshot.now - result.at, 1),
        report=_without_nodes(report),
        lines={str(line): now for line, now in places.items() if now != line},
        documents=tuple(_document(view, one) for one in kernel_documents.listed(report)),
        graphs=tuple(_graph(view, one) for one in graph_documents.listed(report)),
        wrappers=tuple(_wrapper(view, one) for one in wrapper_documents.listed(report)),
        pages=tuple(_page(view, page) for page in Page),
        nodes=tree.nodes(snapshot, view, result),
    )


def _without_nodes(report: TargetReport) -> TargetReport:
    """The nodes of graphs are the largest part of a report, and stand in documents of their own."""
    return replace(report, fx_graphs=tuple(replace(graph, nodes=()) for graph in report.fx_graphs))


def lines(snapshot: Snapshot, address: Address) -> LinesResult:
    """Lines of a kernel's document: those of the kernel's source, and those of the program that these compute.

    The program's lines are those of its documents now.
    """
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    shown = kernel_documents.find(result.report, address.name) if result is not None else None
    if result is None or shown is None:
        return LinesResult()
    model = {
        str(line): tuple(
            ProgramLine(place.file, now)
            for place in places
            if (now := snapshot.now_at(result, place.file, place.line)) is not None
        )
        for line, places in kernel_documents.model_lines(shown.kernel).items()
    }
    found = kernel_documents.lines(shown, result.report)
    return LinesResult(_keyed(found.kernel), _keyed(found.ptx), model)


def _keyed(table: LineTable) -> dict[str, int]:
    return {str(line): at for line, at in table.items()}


def _document(view: TargetView, shown: KernelDocument) -> KernelDocumentFact:
    return KernelDocumentFact(
        uri=artifacts.kernel_address(view, shown).uri,
        kernel=shown.kernel.name,
        graph=shown.kernel.graph,
        stage=shown.stage,
        likely=shown.config is None or shown.config.likely,
        revision=shown.revision,
        language=languages.of(shown.name).value,
    )


def _graph(view: TargetView, shown: GraphDocument) -> GraphDocumentFact:
    whole = shown.parts[0]
    return GraphDocumentFact(
        uri=artifacts.graph_address(view, shown).uri,
        graph=whole.graph,
        stage=whole.stage,
        phase=whole.phase,
        title=shown.title,
        ops=whole.ops,
        language=languages.of(shown.name).value,
    )


def _wrapper(view: TargetView, shown: WrapperDocument) -> WrapperDocumentFact:
    return WrapperDocumentFact(
        uri=artifacts.wrapper_address(view, shown).uri,
        graph=shown.wrapper.graph,
        phase=shown.wrapper.phase,
        title=shown.title,
        revision=shown.revision,
        language=languages.of(shown.name).value,
    )


def _page(view: TargetView, page: Page) -> PageFact:
    return PageFact(artifacts.page_address(view, page).uri, page.value, languages.of(page.value).value)
