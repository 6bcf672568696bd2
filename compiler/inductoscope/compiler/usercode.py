"""Which source files are the user's own, and where in a stack the user's code is.

Knows nothing of torch's tracing; it only judges file names and ready-made frames.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inductoscope import protocol
from inductoscope.compiler import scratch
from inductoscope.protocol.report import Place

_INSTALLED = ("site-packages", "dist-packages")
_OWN = (str(Path(__file__).resolve().parent), str(Path(protocol.__file__).resolve().parent))


@dataclass(frozen=True)
class Frame:
    """One line of a Python stack.

    Columns are 0-based offsets into the UTF-8 bytes of the line, as Python's position table has them; they and
    `end_line` are None where the interpreter does not tell.  `resumed` says that the frame is the rest of `function`
    after a graph break, compiled as a function of its own.
    """

    file: str
    line: int
    function: str
    column: int | None = None
    end_column: int | None = None
    end_line: int | None = None
    resumed: bool = False

    @property
    def place(self) -> Place:
        """The frame as the report tells it."""
        return Place(self.file, self.line, self.function)


class UserCode:
    """Tells the user's files from the standard library's, installed packages', torch's and our own.

    `also` names files that count as the user's wherever they lie, such as an installed file that is being edited.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._also = frozenset(_normal(file) for file in also)
        self._is_user = cache(self._judge)

    def is_user(self, file: str) -> bool:
        """Whether the user is the one to change `file`."""
        return self._is_user(file)

    def innermost(self, frames: Sequence[Frame]) -> Frame | None:
        """The user's last frame in `frames`, which stand outermost first."""
        return next((frame for frame in reversed(frames) if self.is_user(frame.file)), None)

    def innermost_user(self, frames: Sequence[Frame]) -> Place | None:
        """The place of the user's last frame in `frames`, which stand outermost first."""
        frame = self.innermost(frames)
        return frame.place if frame else None

    def chain(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """The user's frames, each function and its resumed parts folded into the line reached last."""
        folded: list[Frame] = []
        for frame in frames:
            if not self.is_user(frame.file):
                continue
            last = folded[-1] if folded else None
            if last and frame.resumed and (last.file, last.function) == (frame.file, frame.function):
                folded.pop()
            folded.append(frame)
        return tuple(folded)

    def _judge(self, file: str) -> bool:
        if not file or file.startswith("<"):
            return False
        path = _normal(file)
        if path in self._also:
            return True
        if any(part in _INSTALLED for part in Path(path).parts):
            return False
        return not any(_inside(path, folder) for folder in (*_library_folders(), *_OWN))


@cache
def _library_folders() -> tuple[str, ...]:
    """Folders of the standard library, of generated code, and of torch, which may be built in place."""
    names = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {
        os.__file__ and str(Path(os.__file__).parent)
    }
    folders = {_normal(name) for name in names if name}
    torch = _package_folder("torch")
    return tuple(folders | _generated_folders() | ({torch} if torch else set()))


def _generated_folders() -> set[str]:
    """Where the modules lie that Inductor and Triton write and import."""
    return {_normal(os.environ[name]) for name in scratch.CACHE_VARIABLES if os.environ.get(name)}


def forget_folders() -> None:
    """Find the folders of generated code anew: this process has others than the one that it was forked from."""
    _library_folders.cache_clear()


def _package_folder(name: str) -> str | None:
    import importlib.util

    spec = importlib.util.find_spec(name)
    return _normal(str(Path(spec.origin).parent)) if spec and spec.origin else None


@cache
def _normal(file: str) -> str:
    return os.path.normcase(os.path.realpath(file))


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)
