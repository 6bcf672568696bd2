"""Exceptions of the user's program become failures: what happened, where, why, and what to do.

The message is for people and never holds a traceback; that goes to `details`, for the log.
"""

from __future__ import annotations

import argparse
import importlib.util
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from inductoscope.compiler.marks import line_span
from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Place, Span

IsUser = Callable[[str], bool]
"""Whether a file is the user's own."""

# Import name -> what to install, where the two differ and the import is common in model files.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "flash_attn": "flash-attn",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


# What torch says when a program asks for a GPU that is not there: a build without CUDA, no driver, no card.
_NO_GPU = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "Attempting to deserialize object on a CUDA device",
)

_UNDER_MAIN = 'Put what runs the program, rather than defines it, under `if __name__ == "__main__":`.'

_NO_MEMORY = ("not enough memory", "out of memory", "can't allocate memory")


class RunFailedError(Exception):
    """The run cannot go on; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def innermost(error: BaseException, is_user: IsUser) -> Place | None:
    """The user's own line that was running when `error` came up, or None."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if is_user(frame.f_code.co_filename):
            place = Place(frame.f_code.co_filename, line, frame.f_code.co_name)
    return place


def details(error: BaseException) -> str:
    """The traceback, for the log."""
    return "".join(traceback.format_exception(error))


def failed(kind: FailureKind, message: str, place: Place | Span | None, error: BaseException | None = None) -> Failure:
    """A failure at a line or span."""
    span = line_span(place.file, place.line) if isinstance(place, Place) else place
    return Failure(kind, message, span, details(error) if error is not None else "")


def at_import(error: BaseException, file: str, is_user: IsUser) -> Failure:
    """Importing the target's file raised `error`."""
    place = innermost(error, is_user) or Place(file, 1)
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return _syntax(error)
    if _wants_gpu(error):
        return _no_gpu(f"Importing {_called(file)}", place, error)
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return failed(FailureKind.IMPORT, _missing_module(error.name, file, place), place, error)
    if isinstance(error, ImportError):
        message = f"{_called(file)} cannot be imported: {_line(place)} raises {describe(error)}."
        return failed(FailureKind.IMPORT, message, place, error)
    if isinstance(error, SystemExit):
        asked = _said_by_argparse(error)
        why = f", for its command line was not given: {asked}" if asked else ""
        message = f"Importing {_called(file)} ends the program ({_exit(error)} at {_line(place)}{why}). {_UNDER_MAIN}"
        return failed(FailureKind.IMPORT, message, place, error)
    return _failing_import(error, file, place)


def _failing_import(error: BaseException, file: str, place: Place) -> Failure:
    """An error at the top level of a file, or below a call there: the statement of that file is what to change."""
    message = f"Importing {_called(file)} fails at {_line(place)}: {describe(error)}."
    own = _running_statement(error, file)
    if own is None:
        return failed(FailureKind.IMPORT, message, place, error)
    if (own.file, own.line) != (place.file, place.line):
        message += f" Line {own.line} of {_called(file)} led there."
    return failed(FailureKind.IMPORT, f"{message} {_UNDER_MAIN}", own, error)


def while_running(error: BaseException, doing: str, fallback: Place, is_user: IsUser) -> Failure:
    """The user's code raised `error` at run time; `doing` says in which call (`Model.forward`)."""
    place = innermost(error, is_user) or fallback
    if _wants_gpu(error):
        return _no_gpu(doing, place, error)
    if isinstance(error, SystemExit):
        message = f"{doing} ends the program ({_exit(error)} at {_line(place)}), so there is nothing to look at."
    elif isinstance(error, KeyboardInterrupt):
        message = f"{doing} was interrupted at {_line(place)}."
    elif is_out_of_memory(error):
        message = f"{doing} runs out of memory at {_line(place)}: {describe(error)}. Use smaller example inputs."
    elif isinstance(error, RecursionError):
        message = (
            f"{doing} reaches Python's limit of nested calls at {_line(place)}: it calls itself without an end, or a "
            f"loop with a graph break in it, which a compiled function goes through by calls, is too long. "
            f"Python says: {describe(error)}."
        )
    else:
        message = f"{doing} raises an error of its own at {_line(place)}: {describe(error)}."
    return failed(FailureKind.RUN, message, place, error)


def escaped(error: BaseException, doing: str, is_user: IsUser) -> Failure | None:
    """The failure for an exception that the user's own code raised where nothing of the kind was expected.

    Programs may run code of theirs on any access to their objects (`__getattr__`, properties, iterators).  None when
    the exception is not the program's.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames or not is_user(frames[-1][0].f_code.co_filename):
        return None
    code = frames[-1][0].f_code
    return while_running(error, doing, Place(code.co_filename, frames[-1][1], code.co_name), is_user)


def came_from_below(error: RunFailedError, is_user: IsUser) -> bool:
    """Whether what failed came up below the program's own lines, in torch or in what stands for a device."""
    cause = error.__cause__
    if error.failure.kind is FailureKind.DEVICE:
        return True
    if cause is None or isinstance(cause, ImportError | SyntaxError | MemoryError | RecursionError | SystemExit):
        return False
    frames = list(traceback.walk_tb(cause.__traceback__))
    return bool(frames) and not is_user(frames[-1][0].f_code.co_filename)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on the host or on a device."""
    said = text_of(error)
    return isinstance(error, MemoryError) or any(words in said for words in _NO_MEMORY)


def text_of(error: BaseException) -> str:
    """The text of an exception; a class of the program's may be unable to give one."""
    try:
        return str(error)
    except Exception:
        return ""


def describe(error: BaseException) -> str:
    """Type and first paragraph of an exception, without the stacks that torch appends."""
    text = text_of(error).strip().split("\n\n")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = " ".join(lines[:3]).rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _wants_gpu(error: BaseException) -> bool:
    said = text_of(error)
    return any(words in said for words in _NO_GPU)


def _no_gpu(doing: str, place: Place, error: BaseException) -> Failure:
    message = (
        f"{doing} needs a GPU at {_line(place)}, and there is none here ({describe(error)}). "
        "Look at the program on a simulated one: --device sim:H200."
    )
    return failed(FailureKind.DEVICE, message, place, error)


def _syntax(error: SyntaxError) -> Failure:
    file, line = str(error.filename), int(error.lineno or 1)
    column = max(0, (error.offset or 1) - 1)
    end_line = error.end_lineno or line
    end_column = error.end_offset - 1 if error.end_offset and error.end_offset > 0 else column + 1
    if end_line == line and end_column <= column:
        end_column = column + 1
    message = f"{_called(file)} is not valid Python {sys.version_info[0]}.{sys.version_info[1]}: {error.msg}."
    if error.text and error.text.strip():
        message += f" The line is: {error.text.strip()}"
    span = Span(file, line, column, end_line, end_column)
    return Failure(FailureKind.SYNTAX, message, span, details(error))


def _missing_module(name: str, file: str, place: Place) -> str:
    top = name.partition(".")[0]
    begin = f"{_called(file)} cannot be imported: there is no module {name!r}, which {_line(place)} imports."
    if _exists(top) and top != name:
        return f"{begin} The package {top!r} is there but has no such part: check its version or the spelling."
    if place.file and _beside(place.file, top):
        return f"{begin} A file of that name lies in the project: add its folder to the search paths in the settings."
    distribution = _DISTRIBUTIONS.get(top, top)
    return (
        f"{begin} Install it into the interpreter in use ({sys.executable} -m pip install {distribution}), "
        "or, if it is part of your project, add its folder to the search paths in the settings."
    )


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


def _beside(file: str, name: str) -> bool:
    """Whether a folder above `file`, within three steps, holds a module called `name`."""
    folders = list(Path(file).parents)[:4]
    return any((folder / f"{name}.py").is_file() or (folder / name).is_dir() for folder in folders)


def _running_statement(error: BaseException, file: str) -> Place | None:
    """The statement of `file` itself that was running when its import failed, where it is no definition or import."""
    lines = (
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>" and os.path.realpath(frame.f_code.co_filename) == os.path.realpath(file)
    )
    line = next(lines, None)
    if line is None or linecache.getline(file, line).lstrip().startswith(("import ", "from ", "class ", "def ", "@")):
        return None
    return Place(file, line)


def _said_by_argparse(error: SystemExit) -> str | None:
    """What argparse printed before it ended the program; the program's own parser may be anywhere above."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_filename == argparse.__file__ and code.co_name == "error":
            return text_of(Exception(frame.f_locals.get("message", ""))) or None
    return None


def _exit(error: SystemExit) -> str:
    return "sys.exit()" if error.code is None else f"sys.exit({error.code!r})"


def _called(file: str) -> str:
    return Path(file).name


def _line(place: Place) -> str:
    return f"line {place.line} of {Path(place.file).name}"
