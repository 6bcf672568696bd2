"""The guards of a compiled version, from the tree that torch prints: `dynamo_cpp_guards_str`, 2.4 to 2.15."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from inductoscope.protocol.report import GuardFact
from inductoscope.protocol.torch_texts.guard_facts import DYNAMIC_MARKS, RELATIONS, facts
from inductoscope.server.traces.compilations import Frame
from inductoscope.server.traces.places import Places

_MANAGER = re.compile(r"Manager: source=(?P<source>.*?), (?:accessed_by|type)=")
_LEAF = re.compile(r"[| ]*\+- (?P<check>[A-Z][A-Z_0-9]+): (?P<text>.*)$")
_EPILOGUE = re.compile(r"^\+- LAMBDA_GUARD: (?P<text>.*)$")
_LATENCY = re.compile(r"^Guard latency = (?P<us>[\d.]+) us", re.M)
# `# code  # file:line in function`, the name of the file cut short.
_PLACE = re.compile(r"  # (?P<file>[^\s#]+):(?P<line>\d+) in (?P<function>\S+)")


@dataclass(frozen=True)
class _Check:
    kind: str
    source: str
    text: str
    line: str


def guards(compile_id: str, tree: str, files: Iterable[str], places: Places) -> Iterator[GuardFact]:
    """Every guard in a printed tree; `files` are those that the names in it can be short for."""
    known = tuple(dict.fromkeys(files))
    for check in _together(_checks(tree)):
        frame = _made_at(check.line, known)
        at = places.of(frame) if frame is not None else None
        for fact in facts(compile_id, check.kind, check.source, check.text):
            yield replace(fact, file=at.file, line=at.line) if at is not None else fact


def latency_us(tree: str) -> float | None:
    """How long torch took to check all of it once, in microseconds, where it measured that."""
    match = _LATENCY.search(tree)
    return float(match["us"]) if match else None


def _checks(tree: str) -> Iterator[_Check]:
    source = ""
    for line in tree.splitlines():
        if match := _EPILOGUE.match(line):
            yield _Check("SHAPE_ENV", "", match["text"].partition("  # ")[0].strip(), line)
        elif match := _MANAGER.search(line):
            source = match["source"]
        elif match := _LEAF.match(line):
            yield _Check(match["check"], source, match["text"].partition("  # ")[0].strip(), line)


def _together(checks: Iterable[_Check]) -> Iterator[_Check]:
    """The marks of a tensor, a line for each kind of mark, as one check; a relation at its first member only."""
    marks: dict[str, _Check] = {}
    related: set[str] = set()
    others: list[_Check] = []
    for check in checks:
        if check.kind == DYNAMIC_MARKS:
            before = marks.get(check.source)
            marks[check.source] = replace(before, text=f"{before.text} and {check.text}") if before else check
        elif check.kind not in RELATIONS or check.text not in related:
            related.add(check.text)
            others.append(check)
    yield from (*others, *marks.values())


def _made_at(line: str, files: tuple[str, ...]) -> Frame | None:
    for match in _PLACE.finditer(line):
        whole = [file for file in files if file.endswith(match["file"])]
        if len(whole) == 1:
            text = line[: match.start()].rpartition("  # ")[2].strip()
            return Frame(whole[0], int(match["line"]), match["function"], text)
    return None
