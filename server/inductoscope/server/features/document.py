"""A target's report as a document: breaks, what a forward pass launches, backward, recompiles, and kernel sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductoscope.protocol.report import CacheFact, GraphBreak, Kernel, KernelLanguage, Phase, TargetReport
from inductoscope.server import caches, sizes, tally, whole_calls, words
from inductoscope.server.bench import sentences
from inductoscope.server.features import passes, timeline
from inductoscope.server.features.markup import Block, Code, Heading, Note, Points, Words
from inductoscope.server.snapshot import TargetView


def document(view: TargetView, report: TargetReport, age: float) -> Iterator[Block]:
    """The blocks of the document; `age` is that of the report, in seconds."""
    yield Heading(view.target.name)
    yield Words(f"{words.account(report)} ({words.age(age)})")
    if view.measured is not None and view.measured.benchmark is not None:
        yield Words(words.benchmark(view.measured.benchmark))
        yield Points(tuple(line.strip() for line in sentences.facts(view.measured.benchmark)))
    yield from _predicted(report)
    yield from map(Note, report.notes)
    yield from _decided_on_the_card(report)
    if report.breaks:
        yield Heading("Graph breaks")
        yield Points(tuple(_break(item, report.file) for item in report.breaks))
    if report.probes or report.untried:
        yield Heading("Other sizes of the inputs")
        yield Points(tuple(sizes.sentences(report)))
    yield from _kernels(report)
    yield from passes.section(report)
    yield from _caches(report)
    yield from timeline.section(report)
    yield from _sources(report)


def _predicted(report: TargetReport) -> Iterator[Block]:
    told = tuple(whole_calls.account(report))
    if told:
        yield Heading("What a call is predicted to take")
        yield Points(told)


def _decided_on_the_card(report: TargetReport) -> Iterator[Block]:
    if report.decisions:
        yield Heading("What only the card can decide")
        yield Points(tuple(f"{words.decision(one)}. {one.text}" for one in report.decisions))


def _caches(report: TargetReport) -> Iterator[Block]:
    """What torch's caches would do; an operator that they refuse with its line."""
    if report.caches:
        yield Heading(f"Torch's caches, if the program were started now: {caches.summary(report)}")
        yield Points(tuple(_cache(fact, report.file) for fact in caches.told(report)))


def _cache(fact: CacheFact, own: str) -> str:
    at = f", {words.lines([(fact.file, fact.line)], own)}" if fact.file and fact.line else ""
    return f"{caches.line(fact)}{at}"


def _break(item: GraphBreak, file: str) -> str:
    times = f" ({item.count} times)" if item.count > 1 else ""
    return f"{item.code}, {words.lines([(item.file, item.line)], file)}: {item.reason}{times}"


def _kernels(report: TargetReport) -> Iterator[Block]:
    """Launches as torch first compiled each function; forward apart from backward, kernels apart from library calls."""
    first = [kernel for kernel in report.kernels if tally.is_first_version(kernel.graph)]
    for phase, of in ((Phase.FORWARD, "the forward pass"), (Phase.BACKWARD, "the backward pass")):
        launched = [kernel for kernel in first if kernel.phase is phase]
        generated = [kernel for kernel in launched if kernel.language is not KernelLanguage.EXTERN]
        library = [kernel for kernel in launched if kernel.language is KernelLanguage.EXTERN]
        yield from _list(f"Kernels of {of}", generated, report)
        yield from _list(f"Library calls of {of}", library, report)
    again = len(report.kernels) - len(first)
    if again:
        yield Note(f"{words.count(again, 'more launch', 'more launches')} in versions that were compiled later.")


def _list(title: str, kernels: list[Kernel], report: TargetReport) -> Iterator[Block]:
    if kernels:
        yield Heading(f"{title} ({len(kernels)})")
        yield Points(tuple(_kernel_line(kernel, report.file) for kernel in kernels))


def _kernel_line(kernel: Kernel, file: str) -> str:
    places = [(place.file, place.line) for place in kernel.lines]
    parts = [kernel.name + (f" ({words.lines(places, file)})" if places else "")]
    if kernel.library is not None:
        parts.append(kernel.library)
    if kernel.predicted is not None:
        parts.append(words.predicted(kernel.predicted))
    if kernel.resources is not None:
        parts.append(words.resources(kernel.resources))
    return "; ".join(parts)


def _sources(report: TargetReport) -> Iterator[Block]:
    for kernel in _different(report.kernels):
        language = "python" if kernel.language is KernelLanguage.TRITON else "cpp"
        backward = ", backward" if kernel.phase is Phase.BACKWARD else ""
        yield Heading(f"{kernel.name} (graph {kernel.graph}{backward})")
        yield Code(language, (kernel.source or "").rstrip("\n"))


def _different(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Those with a source, each source once."""
    found: dict[str, Kernel] = {}
    for kernel in kernels:
        if kernel.source:
            found.setdefault(kernel.source, kernel)
    return list(found.values())
