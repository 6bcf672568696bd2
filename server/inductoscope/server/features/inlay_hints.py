"""Text inside of the text: shapes beside the variables that lines set, and behind a line the kernel that it became.

Of shapes only what Dynamo saw a variable set to is shown, never what a line merely contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inductoscope.protocol.report import Kernel, KernelLanguage, TargetReport, ValueFact
from inductoscope.server import tally, words
from inductoscope.server.features import artifacts, kernel_documents
from inductoscope.server.settings import Hints
from inductoscope.server.snapshot import Result, Snapshot, TargetView

MOST_SHOWN = 2
"""Distinct shapes of one variable that are written out; the tooltip has them all."""


@dataclass(frozen=True)
class InlayHint:
    """Text to show after `column` (code points) of a line (1-based); `kernel` is the one that it names first."""

    line: int
    column: int
    label: str
    tooltip: str
    category: Hints = Hints.SHAPES
    kernel: Kernel | None = None


def inlay_hints(snapshot: Snapshot, path: str) -> tuple[InlayHint, ...]:
    """The hints of an open file of the categories that are on, in the order of its lines."""
    if snapshot.documents.get(path) is None:
        return ()
    wanted = snapshot.settings_of(path).inlay_hints
    found = list(_shapes(snapshot, path)) if Hints.SHAPES in wanted else []
    if Hints.KERNELS in wanted:
        found += _kernels(snapshot, path)
    return tuple(sorted(found, key=lambda hint: (hint.line, hint.column)))


def _shapes(snapshot: Snapshot, path: str) -> Iterator[InlayHint]:
    text = snapshot.documents.by_path[path].text
    texts: dict[tuple[int, str], dict[str, str]] = {}
    for fact, result, view in _named(snapshot, path):
        line = snapshot.now_at(result, path, fact.line)
        if line is not None and fact.name is not None:
            seen = texts.setdefault((line, fact.name), {})
            seen.setdefault(fact.text, f"{fact.text} in {view.target.name}, {words.device(result.report.device)}")
    for (line, name), shapes in sorted(texts.items()):
        column = _end_of(name, text.line(line))
        if column is not None:
            yield InlayHint(line, column, f": {_joined(list(shapes))}", "\n".join(shapes.values()))


def _kernels(snapshot: Snapshot, path: str) -> Iterator[InlayHint]:
    """Behind each line the kernels of the first forward version that it went into, for each target."""
    text = snapshot.documents.by_path[path].text
    for view in snapshot.targets.values():
        result = next((result for result in view.results if result.report.kernels), None)
        found = _by_line(result.report, path) if result is not None else {}
        for then, kernels in sorted(found.items()):
            line = snapshot.now_at(result, path, then) if result is not None else None
            if line is not None and result is not None:
                end = len(text.line(line).rstrip())
                yield InlayHint(line, end, _tag(kernels), _card(kernels, view, result), Hints.KERNELS, kernels[0])


def _by_line(report: TargetReport, path: str) -> dict[int, list[Kernel]]:
    """Generated kernels of the forward pass as first compiled, by the lines of a file, each once."""
    found: dict[int, dict[tuple[str, str | None], Kernel]] = {}
    for kernel in tally.first_kernels(report):
        for place in kernel.lines:
            if place.file == path:
                found.setdefault(place.line, {}).setdefault((kernel.name, kernel.source), kernel)
    return {line: sorted(kernels.values(), key=_is_library) for line, kernels in found.items()}


def _is_library(kernel: Kernel) -> bool:
    return kernel.language is KernelLanguage.EXTERN


def _tag(kernels: Sequence[Kernel]) -> str:
    """The first kernel with its predicted time, and how many others there are."""
    predicted = kernels[0].predicted
    cost = f", predicted {words.duration(predicted.us)}" if predicted is not None else ""
    more = f" (+{len(kernels) - 1})" if len(kernels) > 1 else ""
    return f"{kernels[0].name}{cost}{more}"


def _card(kernels: Sequence[Kernel], view: TargetView, result: Result) -> str:
    lines = [
        kernel.name + (f": {words.predicted(kernel.predicted)}" if kernel.predicted is not None else "")
        for kernel in kernels
    ]
    return "\n".join([*lines, f"Whole kernels, in {view.target.name}, {words.device(result.report.device)}"])


def leads_to(snapshot: Snapshot, hint: InlayHint) -> str | None:
    """The document of the kernel that a hint names, None for other hints."""
    for view in snapshot.targets.values() if hint.kernel is not None else ():
        for result in view.results:
            if hint.kernel in result.report.kernels:
                source = kernel_documents.of_kernel(result.report, hint.kernel)[0]
                return artifacts.kernel_address(view, source).uri
    return None


def _named(snapshot: Snapshot, path: str) -> Iterator[tuple[ValueFact, Result, TargetView]]:
    """The values of variables in the newest result of each target that has any."""
    for view in snapshot.targets.values():
        result = next((result for result in view.results if result.report.values), None)
        for fact in result.report.values if result is not None else ():
            if result is not None and fact.file == path and fact.name is not None:
                yield fact, result, view


def _end_of(name: str, text: str) -> int | None:
    """Where the first mention of a variable ends, None where there is none."""
    match = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)
    return match.end() if match else None


def _joined(shapes: list[str]) -> str:
    return " | ".join(shapes[:MOST_SHOWN]) + (" | …" if len(shapes) > MOST_SHOWN else "")
