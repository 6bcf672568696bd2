"""The tree of a target: its graphs in the order of the program with the breaks between them, and what each became.

Below a graph stand its fusion groups, below these their kernels, below these their documents.  Later versions of a
graph come after the first ones.  Facts only; how a tree looks is the editor's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from inductoscope.protocol.report import FusionGroup, Graph, GraphBreak, Kernel, KernelLanguage, Phase, TargetReport
from inductoscope.server import pairing, tally, words
from inductoscope.server.extensions import Node, NodeKind
from inductoscope.server.features import artifacts, graph_documents, kernel_documents, wrapper_documents
from inductoscope.server.features.artifacts import Page
from inductoscope.server.features.kernel_documents import KernelDocument
from inductoscope.server.snapshot import Result, Snapshot, TargetView

_PAGES = {Page.REPORT: "Report", Page.GUARDS: "Guards", Page.TIMELINE: "Timeline"}


def nodes(snapshot: Snapshot, view: TargetView, result: Result) -> tuple[Node, ...]:
    """The nodes below a target; one message where nothing was compiled."""
    maker = _Maker(snapshot, view, result)
    report = result.report
    forward = tally.forward_graphs(report)
    first = [graph for graph in forward if tally.is_first_version(graph.id)]
    later = [graph for graph in forward if not tally.is_first_version(graph.id)]
    found = [*maker.between(first, report.breaks), *(maker.graph(graph) for graph in later)]
    if not found:
        found = [Node(NodeKind.MESSAGE, words.summary(report))]
    return (*found, *maker.pages())


@dataclass(frozen=True)
class _Maker:
    snapshot: Snapshot
    view: TargetView
    result: Result

    @property
    def report(self) -> TargetReport:
        return self.result.report

    @cached_property
    def launched(self) -> dict[tuple[str, Phase], list[tuple[Kernel, FusionGroup | None]]]:
        """Kernels with their groups, by graph and phase."""
        found: dict[tuple[str, Phase], list[tuple[Kernel, FusionGroup | None]]] = {}
        for kernel, group in pairing.with_groups(self.report):
            found.setdefault((kernel.graph, kernel.phase), []).append((kernel, group))
        return found

    @cached_property
    def documents(self) -> dict[tuple[str, str | None], tuple[KernelDocument, ...]]:
        """The documents of each kernel."""
        return kernel_documents.by_kernel(self.report)

    @cached_property
    def wholes(self) -> dict[tuple[str, Phase], list[Node]]:
        """The documents of whole graphs, by graph and phase."""
        found: dict[tuple[str, Phase], list[Node]] = {}
        for shown in graph_documents.listed(self.report):
            graph, uri = shown.parts[0], artifacts.graph_address(self.view, shown).uri
            node = Node(NodeKind.ARTIFACT, shown.title, words.count(graph.ops, "op"), uri)
            found.setdefault((graph.graph, graph.phase), []).append(node)
        for wrapper in wrapper_documents.listed(self.report):
            uri = artifacts.wrapper_address(self.view, wrapper).uri
            node = Node(NodeKind.ARTIFACT, wrapper.title, wrapper.wrapper.language, uri)
            found.setdefault((wrapper.wrapper.graph, wrapper.wrapper.phase), []).append(node)
        return found

    def between(self, graphs: Iterable[Graph], breaks: Iterable[GraphBreak]) -> list[Node]:
        """Graphs with each break behind the last one that begins above it."""
        placed = [(_line_in(self.report, one), 1, self._break(one)) for one in breaks]
        placed += [(graph.line, 0, self.graph(graph)) for graph in graphs if graph.file == self.report.file]
        elsewhere = [self.graph(graph) for graph in graphs if graph.file != self.report.file]
        return [node for _, _, node in sorted(placed, key=lambda one: one[:2])] + elsewhere

    def graph(self, graph: Graph) -> Node:
        """A graph with what became of its forward and of its backward pass."""
        again = "" if tally.is_first_version(graph.id) else ", compiled again"
        backward = self._documents(graph.id, Phase.BACKWARD)
        below = list(self._documents(graph.id, Phase.FORWARD))
        if backward:
            below.append(Node(NodeKind.GRAPH, f"backward of graph {graph.id}", children=backward))
        node = Node(
            NodeKind.GRAPH,
            f"graph {graph.id}{again}",
            f"{graph.function}, {words.count(graph.ops, 'op')}",
            children=tuple(below),
        )
        return self._at(node, graph.file, graph.line)

    def pages(self) -> tuple[Node, ...]:
        """The pages of the target."""
        return tuple(
            Node(NodeKind.PAGE, label, uri=artifacts.page_address(self.view, page).uri)
            for page, label in _PAGES.items()
        )

    def _break(self, item: GraphBreak) -> Node:
        times = f", {item.count} times" if item.count > 1 else ""
        where = words.lines([(item.file, item.line)], self.report.file)
        return self._at(Node(NodeKind.BREAK, item.reason, f"{item.code}, {where}{times}"), item.file, item.line)

    def _documents(self, graph: str, phase: Phase) -> tuple[Node, ...]:
        """Groups with their kernels, then the graph's own documents."""
        return (*self._groups(graph, phase), *self.wholes.get((graph, phase), ()))

    def _groups(self, graph: str, phase: Phase) -> Iterator[Node]:
        for kernel, group in self.launched.get((graph, phase), ()):
            node = self._kernel(kernel)
            if group is None or kernel.language is KernelLanguage.EXTERN:
                yield node
            else:
                yield Node(NodeKind.GROUP, _group(group), _lines(group, self.report.file), children=(node,))

    def _kernel(self, kernel: Kernel) -> Node:
        cost = words.predicted(kernel.predicted) if kernel.predicted is not None else None
        documents = self.documents.get(kernel_documents.identity(kernel), ())
        source = next((one for one in documents if one.config is None), None)
        node = Node(
            NodeKind.KERNEL,
            kernel.name,
            ", ".join(filter(None, (words.computed_by(kernel), cost))) or None,
            artifacts.kernel_address(self.view, source).uri if source is not None else None,
            children=tuple(
                Node(NodeKind.ARTIFACT, one.stage, uri=artifacts.kernel_address(self.view, one).uri)
                for one in documents
                if one.stage is not None
            ),
        )
        place = kernel.lines[0] if kernel.lines else None
        return node if place is None else self._at(node, place.file, place.line)

    def _at(self, node: Node, file: str, line: int) -> Node:
        """The node with its place as it is now; without one where the line was edited since."""
        now = self.snapshot.now_at(self.result, file, line)
        return node if now is None else replace(node, file=file, line=now)


def _line_in(report: TargetReport, item: GraphBreak) -> int:
    """The line of the target's file from which a break was reached."""
    return next((frame.line for frame in item.frames if frame.file == report.file), item.line)


def _group(group: FusionGroup) -> str:
    fused = f", {group.fusion} fusion" if group.fusion != "none" else ""
    return f"{group.kind}{fused} of {words.count(len(group.ops), 'operator')}"


def _lines(group: FusionGroup, own: str) -> str | None:
    places = [(op.file, op.line) for op in group.ops if op.file is not None and op.line is not None]
    return words.lines(places, own) if places else None
