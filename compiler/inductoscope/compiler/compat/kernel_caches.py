"""torch's caches of kernels: built C++ libraries, and the configurations of Triton kernels that were timed.

A C++ library lies under a key of its source and of the compiler's command (`CppCodeCache.load_async`); the result of
timing beside the text of its kernel (`AutotuneCache`).  Both keys are made by torch itself; nothing is built, and a
folder is only looked into.  Checked by running on 2.13 and by reading 2.11 and 2.12.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler.compat.inductor import Point, replaced

_CODECACHE = "torch._inductor.codecache"
WRITE = Point(_CODECACHE, "write", "names the file of a source by its key")
INTELS = Point("torch._inductor.cpp_builder", "_is_intel_compiler", "starts the C++ compiler to ask who made it")
_LOADERS = {
    "cpp_pybinding": ("CppPythonBindingsCodeCache", "load_pybinding_async"),
    "cpp": ("CppCodeCache", "load_async"),
}
_NOT_SETTINGS = frozenset({"configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash"})
ALL_POINTS: tuple[Point, ...] = (WRITE, INTELS)
CHECKED = ("2.13.",)
"""Versions on which keys of libraries that are made here were found equal to those of plain programs."""


class _NamedError(Exception):
    """The key is known, which is all that was asked for."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def library_key(method: str, args: Sequence[Any]) -> str | None:
    """The key of the C++ library that `AsyncCompile.<method>(*args)` would build; None for other methods."""
    if method not in _LOADERS or not WRITE.exists():
        return None
    codecache = importlib.import_module(_CODECACHE)
    owner, load = _LOADERS[method]

    def name(content: str, _extension: str, extra: str = "", *_args: Any, **_kwargs: Any) -> Any:
        raise _NamedError(str(codecache.get_hash(content.strip(), extra, "code")))

    with replaced(WRITE, lambda _: name), replaced(INTELS, lambda _: _is_named_like_intels):
        try:
            getattr(getattr(codecache, owner), load)(*args)
        except _NamedError as named:
            return named.key
    return None


def _is_named_like_intels(compiler: str) -> bool:
    """What torch would ask the compiler: its commands are icx, icpx and icpc.  Reading facts starts no process."""
    return Path(compiler).name.startswith(("icx", "icp"))


def keys_are_checked() -> bool:
    """Whether keys of libraries were compared on this torch."""
    return torch.__version__.startswith(CHECKED)


def has_library(key: str, folder: Path) -> bool:
    """Whether the library with this key lies built in a cache folder."""
    return any(path.suffix in (".so", ".dll", ".pyd") for path in _shelf(key, folder).glob(f"{key}.*"))


def timed_configuration(source: str, folder: Path) -> Mapping[str, object] | None:
    """The configuration that an earlier run found best for a Triton kernel, from a cache folder; None without one.

    The hash of torch's sources, which takes a second, is made only where something was timed for such a source.
    """
    codecache = importlib.import_module(_CODECACHE)
    key = str(codecache.get_hash(source.strip(), "", "code"))
    shelf = _shelf(key, folder)
    if next(shelf.glob("*.best_config"), None) is None:
        return None
    cache = importlib.import_module("torch._inductor.runtime.autotune_cache").AutotuneCache
    settings = {"autotune_local_cache": True, "autotune_remote_cache": False}
    made = cache.create(settings, str(shelf / f"{key}.py"), "")
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(Path(made.local_cache[1]).read_text())
        return {name: value for name, value in found.items() if name not in _NOT_SETTINGS}
    return None


def _shelf(key: str, folder: Path) -> Path:
    """Where torch keeps what belongs to a key (`get_path`)."""
    return folder / key[1:3]
