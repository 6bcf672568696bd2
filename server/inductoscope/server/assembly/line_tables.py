"""Which line of a kernel's source each line of an artifact comes from, read from the artifact's own text.

Every stage of the compiler says so in its own way.  Code that was inlined from a library counts for the kernel line
that called it, as far as the text tells.  Lines are 1-based.  Works on texts alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

LineTable: TypeAlias = Mapping[int, int]
"""Artifact line to kernel line; lines that are no instructions, or nobody's, are left out."""


def of(stage: str, text: str, file: str) -> LineTable:
    """The table of an artifact in which the kernel's source has the name `file`; empty for a stage without lines."""
    read = _READERS.get(stage)
    return dict(read(text.split("\n"), file)) if read is not None else {}


_LOC = re.compile(r"^\s*\.loc\s+(?P<index>\d+)\s+(?P<line>\d+)")
_INLINED_AT = re.compile(r"inlined_at\s+(?P<index>\d+)\s+(?P<line>\d+)")
_FILE = re.compile(r'^\s*\.file\s+(?P<index>\d+)\s+(?:"(?P<folder>[^"]*)"\s+)?"(?P<name>[^"]*)"')
_CHAIN = re.compile(r"(?P<file>[^\s:@\[\]]+):(?P<line>\d+):\d+(?=\s|$)")
_NO_CODE = re.compile(r"^\s*(?:$|[.;#{}()]|//|[\w$.]+:\s*(?:[;/#].*)?$)")
_LAST = re.compile(r"^\s*(?:\}|\.Lfunc_end\w*:|\.end_amdgpu_metadata)")


def _assembly(lines: list[str], file: str) -> Iterator[tuple[int, int]]:
    """PTX and AMD's assembly: a `.loc` holds for what follows, and its comment has the chain of inlined calls."""
    own = {found["index"] for line in lines if (found := _FILE.match(line)) and _is(found["name"], file)}
    now: int | None = None
    for number, line in enumerate(lines, 1):
        if found := _LOC.match(line):
            now = _outermost(line, found, own, file)
        elif _LAST.match(line):
            now = None
        elif now is not None and not _NO_CODE.match(line):
            yield number, now


def _outermost(line: str, loc: re.Match[str], own: set[str], file: str) -> int | None:
    """The kernel line of a `.loc`, wherever the code itself was written; None where it does not tell."""
    calls = list(_CHAIN.finditer(line))
    if calls and _is(calls[-1]["file"], file):
        return int(calls[-1]["line"])
    places = [place for place in (loc, *_INLINED_AT.finditer(line)) if place["index"] in own and place["line"] != "0"]
    return int(places[-1]["line"]) if places else None


_USES = re.compile(r"loc\((?P<what>#loc\w*|\"(?:[^\"\\]|\\.)*\".*|callsite.*|fused.*)\)\s*$")
_DEFINES = re.compile(r"^(?P<name>#loc\w*)\s*=\s*loc\((?P<what>.*)\)\s*$")
_PLACE = re.compile(r'^"(?P<file>[^"]*)":(?P<line>\d+):\d+')
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((?P<inner>.*)\)$')
_CALLSITE = re.compile(r"^callsite\((?P<callee>.*) at (?P<caller>.*)\)$")
_REFERENCE = re.compile(r"#loc\w*")
_DEEPEST = 64


def _mlir(lines: list[str], file: str) -> Iterator[tuple[int, int]]:
    """TTIR and TTGIR: operations end in `loc(...)`, mostly a reference to a definition elsewhere in the text."""
    defined = {found["name"]: found["what"] for line in lines if (found := _DEFINES.match(line))}

    def resolve(what: str, depth: int = 0) -> int | None:
        if depth > _DEEPEST:
            return None
        if what.startswith("#"):
            return resolve(defined.get(what, ""), depth + 1)
        if found := _PLACE.match(what):
            return int(found["line"]) if _is(found["file"], file) else None
        if found := _CALLSITE.match(what):
            return resolve(found["caller"], depth + 1)
        if found := _NAMED.match(what):
            return resolve(found["inner"], depth + 1)
        parts = _REFERENCE.findall(what) if what.startswith("fused") else []
        return next((line for part in parts if (line := resolve(part, depth + 1)) is not None), None)

    for number, line in enumerate(lines, 1):
        if not line.startswith("#") and (used := _USES.search(line)) and (at := resolve(used["what"])) is not None:
            yield number, at


_DBG = re.compile(r"!dbg (?P<node>!\d+)")
_NODE = re.compile(r"^(?P<node>!\d+) = (?:distinct )?!DI(?P<kind>\w+)\((?P<fields>.*)\)\s*$")
_FIELD = re.compile(r"(?P<key>\w+): (?P<value>!\d+|\d+|\"[^\"]*\")")


def _llvm(lines: list[str], file: str) -> Iterator[tuple[int, int]]:
    """LLVM IR: instructions refer to debug locations, which refer to where they were inlined and to their scope."""
    nodes: dict[str, tuple[str, dict[str, str]]] = {}
    for line in lines:
        if found := _NODE.match(line):
            nodes[found["node"]] = (found["kind"], {f["key"]: f["value"] for f in _FIELD.finditer(found["fields"])})

    def fields(node: str | None) -> dict[str, str]:
        return nodes[node][1] if node in nodes else {}

    def kernel_line(node: str) -> int | None:
        for _ in range(_DEEPEST):
            if "inlinedAt" not in fields(node):
                break
            node = fields(node)["inlinedAt"]
        scope = fields(node).get("scope")
        for _ in range(_DEEPEST):
            if "file" in fields(scope) or "scope" not in fields(scope):
                break
            scope = fields(scope)["scope"]
        name = fields(fields(scope).get("file")).get("filename", "").strip('"')
        line = int(fields(node).get("line", "0"))
        return line if line and _is(name, file) else None

    for number, line in enumerate(lines, 1):
        found = None if line.startswith(("!", "define")) else _DBG.search(line)
        if found is not None and (at := kernel_line(found["node"])) is not None:
            yield number, at


SASS_PLACE = re.compile(r"^\s*//## PTX line (?P<ptx>\d+)(?:, kernel line (?P<kernel>\d+))?$")
"""The comment that `disassembly` puts above the instructions of a place."""

_SASS_CODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S")


def _sass(lines: list[str], _: str) -> Iterator[tuple[int, int]]:
    for number, found in _sass_places(lines):
        if found["kernel"]:
            yield number, int(found["kernel"])


def sass_to_ptx(text: str) -> LineTable:
    """SASS line to PTX line."""
    return {number: int(found["ptx"]) for number, found in _sass_places(text.split("\n"))}


def _sass_places(lines: list[str]) -> Iterator[tuple[int, re.Match[str]]]:
    now: re.Match[str] | None = None
    for number, line in enumerate(lines, 1):
        now = SASS_PLACE.match(line) or now
        if now is not None and _SASS_CODE.match(line):
            yield number, now


def _is(name: str, file: str) -> bool:
    return name.replace("\\", "/").rpartition("/")[2] == file


_READERS: dict[str, Callable[[list[str], str], Iterator[tuple[int, int]]]] = {
    "ptx": _assembly,
    "amdgcn": _assembly,
    "ttir": _mlir,
    "ttgir": _mlir,
    "llir": _llvm,
    "sass": _sass,
}
