"""What a compilation leaves behind in torch, put back: so that the next one in this process, or in a child of it, is
told apart from the first one of a process by nothing but its time.

Counters and statistics are put back, for they are in names and in reports; so are settings that a program can see, the
modules and the path.  Tables that torch makes once (patterns, registries of devices) stay: they are what makes the next
compilation cheap, and are the same in every process.  The names are those of torch 2.11 to 2.15; what a version lacks
it does not leave behind.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import linecache
import os
import random
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler import scratch

_COUNTING = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._subclasses", "torch._higher_order_ops")
"""Packages whose modules and classes hold counters."""

_STATISTICS = (
    ("torch._dynamo.utils", "counters"),
    ("torch._dynamo.utils", "compilation_time_metrics"),
    ("torch._dynamo.utils", "_compilation_metrics"),
    ("torch._dynamo.eval_frame", "DynamoTLS.traced_frame_infos"),
    ("torch._inductor.compile_fx", "FxCompile._compile_stats"),
    ("torch._logging._internal", "structured_logging_overhead"),
    ("torch._logging.structured", "INTERN_TABLE"),
    ("torch.utils._stats", "simple_call_counter"),
)
"""Dictionaries and lists that every compilation adds to, in 2.11 to 2.15."""

_STAY = ("torch", "triton", "inductoscope", "sympy", "mpmath", "numpy")
"""Packages whose modules stay imported, beside the standard library's: those that every compilation imports."""


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Around a compilation of which nothing is to be seen afterwards."""
    state = _State()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        _forget_programs()
        state.put_back()


def _forget_programs() -> None:
    """Drop what is known of compiled programs and of kernels."""
    import torch._inductor.metrics
    import torch._inductor.utils

    torch._dynamo.reset()
    torch._inductor.utils.clear_caches()  # also the modules of generated code
    torch._inductor.metrics.reset()
    for place in _STATISTICS:
        held = _reach(*place)
        if held is not None:
            held.clear()
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).pop("__warningregistry__", None)  # what was warned of once is to be warned of again
    torch._subclasses.FakeTensorMode.cache_clear()
    _end_progress_bars()
    gc.collect()


def _end_progress_bars() -> None:
    """End the thread of tqdm, which Inductor shows its progress with where it is installed."""
    monitor = _reach("tqdm", "tqdm.monitor")
    if monitor is not None:
        monitor.exit()
        sys.modules["tqdm"].tqdm.monitor = None


class _State:
    """What a program can see or a name is made of."""

    def __init__(self) -> None:
        self._modules = frozenset(sys.modules)
        self._path = list(sys.path)
        self._importer = list(sys.meta_path)
        self._environment = dict(os.environ)
        self._lines = frozenset(linecache.cache)
        self._validate = torch.distributions.Distribution._validate_args
        self._random = random.getstate()
        self._torch_random = torch.get_rng_state()
        self._counters = _Counters()

    def put_back(self) -> None:
        self._counters.put_back()
        torch.set_rng_state(self._torch_random)
        random.setstate(self._random)
        self._undo_patches()
        for file in frozenset(linecache.cache) - self._lines:
            del linecache.cache[file]
        for name in frozenset(os.environ) - frozenset(self._environment):
            del os.environ[name]
        os.environ.update(self._environment)
        sys.path[:] = self._path
        sys.meta_path[:] = self._importer
        for name in frozenset(sys.modules) - self._modules:
            if not _is_torchs(sys.modules[name]):
                del sys.modules[name]

    def _undo_patches(self) -> None:
        """Let the first compilation of a program change what it changes (`TorchPatcher.patch`) once more."""
        torch.distributions.Distribution.set_default_validate_args(self._validate)
        patch = _reach("torch._dynamo.eval_frame", "TorchPatcher.patch")
        if hasattr(patch, "cache_clear"):
            patch.cache_clear()


class _Counters:
    """Where the modules of torch's compiler and their classes count, and how far they had come."""

    def __init__(self) -> None:
        self._before = {(id(owner), name): _position(value) for owner, name, value in _counters()}

    def put_back(self) -> None:
        """Have everything count from there again."""
        anew: dict[int, Any] = {}  # a count that several modules hold stays one
        for owner, name, value in _counters():
            before = self._before.get((id(owner), name))
            if before is not None and before != _position(value):
                number = before if type(value) is int else anew.setdefault(id(value), itertools.count(*before))
                setattr(owner, name, number)


def _counters() -> Iterator[tuple[Any, str, Any]]:
    """Owner, name and value of every whole number and every `itertools.count`."""
    for module_name, module in list(sys.modules.items()):
        if not (isinstance(module, types.ModuleType) and module_name.startswith(_COUNTING)):
            continue
        classes = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module_name)
        for owner in (module, *classes):
            for name, value in list(vars(owner).items()):
                if type(value) is int or type(value) is itertools.count:
                    yield owner, name, value


def _position(value: Any) -> Any:
    return value if type(value) is int else value.__reduce__()[1]


def _is_torchs(module: Any) -> bool:
    """Whether a module is one that every compilation imports: of the packages it needs, or the standard library's."""
    name = getattr(module, "__name__", "").partition(".")[0]
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_absolute():
        return name in (*_STAY, *sys.stdlib_module_names)
    if any(file.startswith(folder + os.sep) for folder in _folders_of_generated_code()):
        return False
    if name in _STAY:
        return True
    folder = sysconfig.get_path("stdlib")
    return file.startswith(folder + os.sep) and not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _folders_of_generated_code() -> list[str]:
    return [os.environ[name] for name in scratch.CACHE_VARIABLES if os.environ.get(name)]


def _reach(module: str, path: str) -> Any:
    """The object at a dotted path in a module that is imported, or None."""
    value: Any = sys.modules.get(module)
    for name in path.split("."):
        value = getattr(value, name, None)
    return value
