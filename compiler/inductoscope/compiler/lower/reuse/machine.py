"""What all graphs of a process have in common for Inductor: versions, sources, the machine, the environment.

Knows nothing of graphs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from inductoscope.compiler import scratch
from inductoscope.compiler.compat import caches
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.identity import UncertainError
from inductoscope.protocol import report

_HEEDED = (
    *("TORCH", "PYTORCH", "TRITON", "INDUCTOR", "AOT", "ATEN", "CUDA", "HIP", "ROCM", "OMP", "GOMP", "KMP", "MKL"),
    *("DNNL", "ONEDNN", "CXX", "CFLAGS", "CPPFLAGS", "LDFLAGS", "CUTLASS", "NVIDIA", "HALIDE"),
)
"""How the names of environment variables begin that torch, Triton and their libraries read."""

_TORCH_PARTS = ("_inductor", "_functorch", "_dynamo", "_decomp", "fx", "_refs", "_prims")


def machine_text() -> str:
    """Everything about this process that Inductor's output, and what is read of it, may depend on.

    Raises `UncertainError` for a torch whose sources somebody may be at work on.
    """
    return "\n".join((_installed(), _environment(), compat.cpp_compiler()))


def _environment() -> str:
    heeded = (name for name in sorted(os.environ) if name.startswith(_HEEDED) and name not in scratch.CACHE_VARIABLES)
    return "\n".join(f"{name}={os.environ[name]}" for name in heeded)


@functools.cache
def _installed() -> str:
    root = Path(torch.__path__[0])
    if not {"site-packages", "dist-packages"} & set(root.parts):
        raise UncertainError("a torch that is used from its sources")
    return "\n".join(
        (
            caches.version_text(),
            _triton(),
            sys.version,
            " ".join(platform.uname()[4:]),
            _processor(),
            "\n".join(f"{part} {_listing(root / part)}" for part in _TORCH_PARTS),
            _content(Path(__file__).parents[2], Path(report.__file__).parent),
        )
    )


def _triton() -> str:
    """Triton's own first file, which says its version; nothing where it is not installed."""
    found = importlib.util.find_spec("triton")
    return Path(found.origin).read_text(encoding="utf-8") if found is not None and found.origin else ""


def _processor() -> str:
    """What the processor can do, for the vector instructions of C++ kernels; the architecture's name elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _listing(folder: Path) -> str:
    """Names, sizes and times of all Python files: they change when somebody edits an installed torch."""
    found = sorted(_files(str(folder)))
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _content(*folders: Path) -> str:
    """A hash of our own sources: facts of another version of ours are not read as this one's."""
    whole = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            whole.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()
