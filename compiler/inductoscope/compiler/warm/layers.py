"""What a warm process can have ready beyond torch itself: a device, imported modules."""

from __future__ import annotations

import importlib
import os
import site
import sys
import sysconfig
import threading
from dataclasses import dataclass
from pathlib import Path

from inductoscope.compiler import loader
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Layer, Warmed


@dataclass(frozen=True)
class Made:
    """A layer that was added: what the process has ready now, in words, and what it tells the server."""

    has: tuple[str, ...]
    warmed: Warmed


def add(layer: Layer, cwd: str | None, place: Path) -> Made:
    """Add `layer` to this process; `place` is a folder for what has to be written."""
    before = threads()
    if layer.device is not None:
        from inductoscope.compiler.warm import rehearsal

        unfit = rehearsal.compile_something(layer.device, place)
        return Made((layer.device,), Warmed((), unfit or why_unfit(before)))
    if cwd is not None:
        os.chdir(cwd)
    known = frozenset(sys.modules)
    unfit = _import(layer) or why_unfit(before)
    new = {name.partition(".")[0] for name in frozenset(sys.modules) - known} - sys.stdlib_module_names
    return Made(tuple(sorted(new)), Warmed(_own_files(known), unfit))


def _import(layer: Layer) -> str | None:
    """Import the modules as the program would; returns why a fork would not be as the program itself."""
    import torch

    file = Path(str(layer.file))
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    loader.extend_path(loader.module_name(file, text).root, file.parent, layer.search_paths)
    torch.manual_seed(0)
    before = _shared()
    for name in layer.modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                return f"{name} cannot be imported ({error})"
        except BaseException as error:
            return f"{name} cannot be imported ({type(error).__name__}: {error})"
    after = _shared()
    changed = ", ".join(what for what, value in before.items() if after[what] != value)
    return f"importing {', '.join(layer.modules)} changes {changed}" if changed else None


def _shared() -> dict[str, object]:
    """What imports should leave alone: a fork shares it with its parent, or finds it other than the program would."""
    import torch

    open_files = sorted(link.name for link in Path("/proc/self/fd").iterdir() if link.exists())
    return {
        "the open files": open_files,
        "the working folder": str(Path.cwd()),
        "the random numbers of torch": torch.get_rng_state().numpy().tobytes(),
        "the state of CUDA": torch.cuda.is_initialized(),
        "the number of threads": torch.get_num_threads(),
    }


def _own_files(known: frozenset[str]) -> tuple[str, ...]:
    """The files of modules that are new and that somebody may be at work on."""
    is_user = UserCode().is_user
    files = (getattr(sys.modules.get(name), "__file__", None) for name in frozenset(sys.modules) - known)
    return tuple(sorted({file for file in files if isinstance(file, str) and is_user(file)}))


def why_unfit(threads_before: int) -> str | None:
    """Why this process must not be forked, as a sentence; None if it may.

    Threads are not there after a fork, and what they held is held for good.  `threads_before` is how many the process
    had when only torch was imported: libraries of that kind (OpenBLAS) end theirs before a fork and start them anew.
    """
    if threading.active_count() > 1:
        names = ", ".join(sorted(thread.name for thread in threading.enumerate()[1:]))
        return f"threads run in it ({names})"
    if threads() > threads_before:
        return "a library started threads in it"
    return None


def installation() -> tuple[str, ...]:
    """Files and folders that change when the interpreter, torch or another package is installed anew."""
    import torch

    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    files = [os.path.realpath(sys.executable), str(torch.version.__file__), str(Path(sys.prefix, "pyvenv.cfg"))]
    return tuple(path for path in (*files, *sorted(folders & set(sys.path))) if path and Path(path).exists())


def threads() -> int:
    """The threads of this process, those of libraries included."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())
