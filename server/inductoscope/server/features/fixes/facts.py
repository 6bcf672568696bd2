"""What the runs know of a finding's surroundings: which names hold tensors, and whether lines are still as they were.

Lines are those of the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.server import diagnostics
from inductoscope.server.diagnostics import Shown
from inductoscope.server.snapshot import Result, Snapshot, TargetView

_TENSOR = re.compile(r"\w+\[.*\]")
_ARGUMENT = re.compile(r"(?:(?P<name>\w+)=)?(?P<value>.*)", re.S)


@dataclass(frozen=True)
class Facts:
    """`tensors` are (line, name) where a run saw a name get a tensor; `arguments` says by function which of its
    arguments were tensors in every call, by place and by name.
    """

    tensors: frozenset[tuple[int, str]] = frozenset()
    arguments: tuple[tuple[str, frozenset[int], frozenset[str]], ...] = ()


def of_file(snapshot: Snapshot, path: str) -> Facts:
    """What is known of a file."""
    results = [(view, result) for view in snapshot.targets.values() for result in view.results]
    tensors = {pair for _, result in results for pair in _tensors(snapshot, result, path)}
    arguments = (_arguments(view, result) for view, result in results if view.target.file == path)
    return Facts(frozenset(tensors), tuple(arguments))


def origins(snapshot: Snapshot, shown: Shown) -> tuple[Result, ...] | None:
    """The results that a finding was made from; None for one of the scan, which reads what is on screen."""
    for view in snapshot.targets.values():
        if view.target.name == shown.target and shown in tuple(diagnostics.of_target(snapshot, view)):
            return tuple(_sources(snapshot, view, shown))
    return None


def is_current(snapshot: Snapshot, made_from: tuple[Result, ...] | None, path: str, lines: tuple[int, int]) -> bool:
    """Whether lines, from the first to the last, are in every respect those that a run read."""
    return made_from is None or any(_unchanged(snapshot, result, path, *lines) for result in made_from)


def _sources(snapshot: Snapshot, view: TargetView, shown: Shown) -> Iterator[Result]:
    for result in view.results:
        if any(snapshot.moved(result, finding) == shown.finding for finding in result.report.findings):
            yield result


def _unchanged(snapshot: Snapshot, result: Result, path: str, first: int, last: int) -> bool:
    then = [snapshot.then_at(result, path, line) for line in range(first, last + 1)]
    start = then[0]
    return start is not None and then == list(range(start, start + len(then)))


def _tensors(snapshot: Snapshot, result: Result, path: str) -> Iterator[tuple[int, str]]:
    for fact in result.report.values:
        if fact.file == path and fact.name and _TENSOR.fullmatch(fact.text):
            line = snapshot.now_at(result, path, fact.line)
            if line is not None:
                yield line, fact.name


def _arguments(view: TargetView, result: Result) -> tuple[str, frozenset[int], frozenset[str]]:
    places: list[set[int]] = []
    names: list[set[str]] = []
    for call in result.report.inputs:
        read = [_ARGUMENT.fullmatch(text) for text in call.args]
        held = [(number, match["name"]) for number, match in enumerate(read) if match and _TENSOR.match(match["value"])]
        places.append({number for number, name in held if name is None})
        names.append({name for _, name in held if name is not None})
    return (
        view.target.name,
        frozenset(set.intersection(*places) if places else ()),
        frozenset(set.intersection(*names) if names else ()),
    )
