"""From the lines of a kernel's final text to the graph nodes behind them.

The text that a code generator wrote and the text that is loaded differ in names and in blank lines around it, never in
the lines between.  Templates paste finished fragments into a text of their own.
"""

from __future__ import annotations

import re

from torch.fx import Node

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.recording import Call, Compilation, KernelText
from inductoscope.protocol.report import LineMapping

# A line that computes, reads or writes something of the model, as opposed to index arithmetic and ceremony.
COMPUTING = re.compile(
    r"\b_?tmp\w*(?:\[[^\]]*\])?\s*[-+*/|&]?=(?!=)"  # tmp5 = ..., tmp_acc0 += ..., tmp2[3] = ...
    r"|\btl\.(?:store|atomic_\w+)\(|\.store\(|\batomic_add\w*\("
    r"|\b(?:in_)?out_ptr\d+\[.*\]\s*[-+*/|&]?=(?!=)"
)
# Shared index arithmetic (`x1 = xindex // 16`) is written for whoever needs it first and belongs to all.
_INDEX = re.compile(r"^\s*[xyzr]\w* = ")
_DECLARED = re.compile(r"\b(_?tmp\w*)\s*=")


def source_of(noted: Compilation, call: Call) -> str | None:
    """A kernel's text as it would be compiled, without blank lines at the start; None for a library's."""
    text = noted.loaded.get(call.name) or (call.text.text if call.text else None)
    return text.lstrip("\n") if text else None


def nodes_by_line(noted: Compilation, call: Call, source: str) -> dict[int, Node]:
    """Graph nodes by 1-based line of `source`."""
    written = call.text
    if written is None:
        return {}
    marks = written.nodes or _from_fragments(noted, written)
    blank = len(written.text) - len(written.text.lstrip("\n"))
    height = source.count("\n") + 1
    lines = source.splitlines()
    found = {
        at - blank + 1: node
        for at, node in sorted(marks.items())
        if 0 < at - blank + 1 <= height and not _INDEX.match(lines[at - blank])
    }
    return _with_declarations(found, source)


def own_lines(nodes: tuple[Node, ...], source: str) -> tuple[LineMapping, ...]:
    """The lines of a hand-written kernel in the file that it was written in."""
    original = next(filter(None, map(compat.hand_written, nodes)), None)
    if original is None:
        return ()
    lines, wanted = source.splitlines(), original.text.rstrip().splitlines()
    start = next((at for at, line in enumerate(lines) if wanted and line == wanted[0]), len(lines))
    pairs = enumerate(zip(lines[start:], wanted, strict=False))
    return tuple(
        LineMapping(start + at + 1, original.file, original.line + at)
        for at, (line, want) in pairs
        if line == want and line.strip()
    )


def body_lines(source: str) -> list[int]:
    """The 1-based numbers of all lines inside a kernel's function that are not empty."""
    lines = source.splitlines()
    start = _function(lines)
    return [at + 1 for at, line in enumerate(lines) if at > start and line.strip()]


def computing_lines(source: str) -> list[int]:
    """The 1-based numbers of those lines of a kernel that compute, read or write something of the model."""
    lines = source.splitlines()
    start = _function(lines)
    return [at + 1 for at, line in enumerate(lines) if at > start and COMPUTING.search(line)]


def _function(lines: list[str]) -> int:
    return next((at for at, line in enumerate(lines) if line.startswith(("def ", 'extern "C"'))), 0)


def _with_declarations(found: dict[int, Node], source: str) -> dict[int, Node]:
    """C++ accumulators are declared before any operation runs: they belong to the operation that uses them first."""
    lines = source.splitlines()
    for at in computing_lines(source):
        declared = _DECLARED.search(lines[at - 1])
        if at in found or declared is None:
            continue
        use = re.compile(rf"\b{declared[1]}\b")
        users = (later for later in range(at + 1, len(lines) + 1) if later in found and use.search(lines[later - 1]))
        node = found.get(next(users, 0))
        if node is not None:
            found[at] = node
    return found


def _from_fragments(noted: Compilation, written: KernelText) -> dict[int, Node]:
    """A template's text is pasted together: find the fragments in it by their lines, the longest first."""
    lines = [line.strip() for line in written.text.split("\n")]
    marks: dict[int, Node] = {}
    for text, nodes in sorted(noted.fragments, key=lambda fragment: -len(fragment[0])):
        wanted = [line.strip() for line in text.rstrip("\n").split("\n")]
        for at in range(len(lines) - len(wanted) + 1):
            if lines[at : at + len(wanted)] == wanted:
                for offset, node in nodes.items():
                    marks.setdefault(at + offset, node)
    return marks
