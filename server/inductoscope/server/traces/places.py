"""Where the lines of a trace are in the sources as they are now.

A trace has the text of most lines that it names.  Where a file has changed meanwhile, a line is looked for by its text,
nearest to where it was; a function by its definition.  A file of another machine is looked for below a folder of this
one by the end of its path, and only taken where the text agrees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from inductoscope.protocol.report import Place
from inductoscope.server.sources import SourceError, read_text
from inductoscope.server.traces.compilations import Frame


@dataclass(frozen=True)
class _File:
    """A file as it is now; without lines where there is none."""

    path: str
    lines: tuple[str, ...]
    names: dict[int, tuple[str, str]]  # line of a definition (or its first decorator) -> name, qualified name


@dataclass
class Places:
    """Maps places of one trace to the files at hand, and counts what became of them.

    `folder` is where files of another machine are looked for.  `moved` are places that were found on another line,
    `lost` those that are not there any more and stand where the trace has them.
    """

    folder: Path
    moved: set[tuple[str, int]] = field(default_factory=set)
    lost: set[tuple[str, int]] = field(default_factory=set)
    _files: dict[str, _File] = field(default_factory=dict)

    def of(self, frame: Frame) -> Place:
        """The place of a line of a stack."""
        file = self._file(frame)
        return Place(file.path, self._line(file, frame), frame.function)

    def function(self, frame: Frame) -> Place:
        """The place of a function's start; of what follows a graph break, the line where it goes on."""
        if frame.resumed:
            return self.of(frame)
        file = self._file(frame)
        if not file.lines:
            return Place(file.path, frame.line, frame.function)
        starts = [line for line, (name, _) in file.names.items() if name == frame.function]
        if not starts or frame.function.startswith("<"):
            return Place(file.path, frame.line, frame.function)
        found = min(starts, key=lambda line: abs(line - frame.line))
        self._moves(frame, found)
        return Place(file.path, found, frame.function)

    def title(self, place: Place) -> str:
        """The function of a place with the names around it, `Block.forward`, where its source is at hand."""
        file = self._files.get(place.file) or self._load(place.file, place.file)
        return file.names.get(place.line, ("", place.function or "?"))[1]

    def owner(self, frame: Frame) -> str:
        """The full name of the function that a line is in, by its own name and the nearest definition above."""
        file = self._file(frame)
        starts = [line for line, (name, _) in file.names.items() if name == frame.function and line <= frame.line]
        return file.names[max(starts)][1] if starts else frame.function

    def columns(self, place: Place) -> tuple[int, int]:
        """Where the text of a line begins and ends, 0-based; both 0 where the line is not at hand."""
        file = self._files.get(place.file) or self._load(place.file, place.file)
        if not 1 <= place.line <= len(file.lines):
            return 0, 0
        text = file.lines[place.line - 1].rstrip()
        return len(text) - len(text.lstrip()), len(text)

    def _line(self, file: _File, frame: Frame) -> int:
        text = frame.text.strip()
        if not text or not file.lines:
            return frame.line
        if frame.line <= len(file.lines) and file.lines[frame.line - 1].strip().startswith(text):
            return frame.line
        same = [at for at, line in enumerate(file.lines, start=1) if line.strip().startswith(text)]
        if not same:
            self.lost.add((file.path, frame.line))
            return frame.line
        found = min(same, key=lambda at: abs(at - frame.line))
        self._moves(frame, found)
        return found

    def _moves(self, frame: Frame, found: int) -> None:
        if found != frame.line:
            self.moved.add((frame.file, frame.line))

    def _file(self, frame: Frame) -> _File:
        known = self._files.get(frame.file)
        if known is None:
            known = self._files[frame.file] = self._find(frame)
        return known

    def _find(self, frame: Frame) -> _File:
        if not frame.is_user:
            return _File(frame.file, (), {})
        here = self._load(frame.file, frame.file)
        if here.lines:
            return here
        for path in self._candidates(frame.file):
            found = self._load(str(path), frame.file)
            if found.lines and _is_same(found, frame):
                return found
        return here

    def _candidates(self, name: str) -> Iterator[Path]:
        parts: Sequence[str] = (PureWindowsPath(name) if "\\" in name else PurePosixPath(name)).parts
        for start in range(1, len(parts)):
            path = self.folder.joinpath(*parts[start:])
            if path.is_file():
                yield path

    def _load(self, path: str, key: str) -> _File:
        try:
            text = read_text(Path(path)) if Path(path).is_absolute() else ""
        except (SourceError, OSError, ValueError):
            text = ""
        found = self._files[key] = _File(path, tuple(text.splitlines()), dict(_definitions(text)))
        self._files.setdefault(path, found)
        return found


def _is_same(file: _File, frame: Frame) -> bool:
    """Whether a file with the end of a path is the one of the trace: it has the line, or else the function."""
    if frame.text:
        return any(line.strip().startswith(frame.text.strip()) for line in file.lines)
    return any(name == frame.function for name, _ in file.names.values())


def _definitions(text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Every function with the line that its code object starts on: that of its first decorator."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, around = pending.pop()
        for child in ast.iter_child_nodes(node):
            inside = around
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{around}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    lines = {child.lineno, *(one.lineno for one in child.decorator_list)}
                    yield from ((line, (child.name, inside[:-1])) for line in sorted(lines))
            pending.append((child, inside))
