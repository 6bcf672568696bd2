"""The real side: torch on a card, with kernels and library calls timed one by one.

Needs a GPU.  Nothing of the product takes part: what is recorded here is what it is judged by.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch._inductor import async_compile
from torch._inductor.codecache import PyCodeCache
from torch._inductor.graph import GraphLowering
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fidelity_programs.kit import Prepared, Use
from fidelity_tools import running
from fidelity_tools.record import (
    KernelRecord,
    LibraryCall,
    ProgramRecord,
    Texts,
    Timed,
    calls_in,
    kernel_text,
    wrapper_text,
)

_LIBRARY = ("mm", "bmm", "addmm", "baddbmm", "convolution", "_scaled_mm", "_int_mm", "convolution_backward")
_SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "bool"}


class RealSide:
    """Runs programs on this machine's card; processes that share `turn`, a file, wait while one of them takes times."""

    def __init__(self, turn: Path) -> None:
        self._turn = turn
        self._kernels: dict[tuple[str, str], None] = {}
        self._wrappers: list[str] = []
        self._times: dict[tuple[str, tuple[str, ...]], float] = {}

    def made(self) -> dict[str, Any]:
        """Where and with what this side runs."""
        import triton

        return {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cudnn": torch.backends.cudnn.version(),
            "method": "do_bench, L2 flushed, median; kernels in the configuration that autotuning chose",
        }

    def record(self, group: str, make: FunctionType, texts: Texts) -> ProgramRecord:
        """One program."""
        running.begin()
        self._kernels.clear()
        self._wrappers.clear()
        begun, error, looked, library = time.perf_counter(), None, (), ()
        try:
            with self._together(), self._watching():
                prepared = make()
                looked = running.run(prepared)
                torch.cuda.synchronize()
            seconds = time.perf_counter() - begun
            # Operators that carry graphs do not pass through a mode: those programs go without times of library calls.
            with self._alone(), contextlib.suppress(NotImplementedError):
                library = self._library(prepared)
        except Exception as raised:
            error, seconds = running.in_one_line(raised), time.perf_counter() - begun
        prepared = None
        gc.collect()
        torch.cuda.empty_cache()
        with self._alone():
            kernels = tuple(_measured(name, source, texts) for name, source in self._kernels)
        return ProgramRecord(
            group=group,
            seconds=seconds,
            error=error,
            kernels=kernels,
            wrappers=tuple(texts.keep(wrapper_text(source)) for source in self._wrappers),
            calls=tuple(map(calls_in, self._wrappers)),
            library=library,
            looked=looked,
        )

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Note kernels and wrappers as Inductor writes them."""
        compile_kernel, generate = async_compile.AsyncCompile.triton, GraphLowering.codegen

        def triton(this: Any, kernel_name: str, source_code: str, *args: Any, **kwargs: Any) -> Any:
            self._kernels[kernel_name, source_code] = None
            return compile_kernel(this, kernel_name, source_code, *args, **kwargs)

        def codegen(this: Any, *args: Any, **kwargs: Any) -> Any:
            result = generate(this, *args, **kwargs)
            wrapper = result[0] if isinstance(result, tuple) else result
            if type(this) is GraphLowering:  # bodies of `cond` and loops are graphs inside, and parts of its wrapper
                self._wrappers.append(str(getattr(wrapper, "value", wrapper)))
            return result

        async_compile.AsyncCompile.triton, GraphLowering.codegen = triton, codegen  # type: ignore[method-assign]
        try:
            yield
        finally:
            async_compile.AsyncCompile.triton, GraphLowering.codegen = compile_kernel, generate  # type: ignore[method-assign]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self._turn.open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        with self._turn.open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_SH)
            yield

    def _library(self, prepared: Prepared) -> tuple[LibraryCall, ...]:
        """The library calls of one more, compiled call, each timed by itself."""
        if prepared.use is Use.WHOLE:
            return ()
        call = torch.compile(prepared.run, **prepared.options)  # compiled already: its code is found again
        mode = _Timing(self._times)
        with mode:
            running.once(prepared, call)
        return tuple(mode.calls)


class _Timing(TorchDispatchMode):
    """Times each library operator that passes, once for each form of its arguments."""

    def __init__(self, times: dict[tuple[str, tuple[str, ...]], float]) -> None:
        super().__init__()
        self._times = times
        self.calls: list[LibraryCall] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if func.namespace == "aten" and (name in _LIBRARY or "scaled_dot_product" in name):
            form = tuple(_text(leaf) for leaf in tree_leaves((args, kwargs)))
            if (name, form) not in self._times:
                self._times[name, form] = _median_us(lambda: func(*args, **kwargs))
            self.calls.append(LibraryCall(name, form, self._times[name, form]))
        return result


def _text(leaf: object) -> str:
    if not isinstance(leaf, torch.Tensor):
        return str(leaf)
    dtype = str(leaf.dtype).removeprefix("torch.")
    return f"{_SHORT.get(dtype, dtype)}{list(leaf.shape)}:{list(leaf.stride())}"


def _median_us(call: Callable[[], object]) -> float:
    from triton.testing import do_bench

    return float(do_bench(call, warmup=5, rep=20, return_mode="median")) * 1e3


def _measured(name: str, source: str, texts: Texts) -> KernelRecord:
    """A kernel, timed on arguments that Inductor's own benchmark code makes; untimed where that fails."""
    sha256 = texts.keep(kernel_text(source))
    args: Any = None
    try:
        module = PyCodeCache.load(source)
        tuner, args = getattr(module, name), module.get_args()
        stream = torch._C._cuda_getCurrentRawStream(0)
        tuner.run(*args, stream=stream)
        torch.cuda.synchronize()
        us = _median_us(lambda: tuner.run(*args, stream=stream))
        launcher = tuner.launchers[0]
    except Exception:
        return KernelRecord(name, sha256)
    config = launcher.config
    chosen = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    gigabytes = tuner.inductor_meta.get("kernel_num_gb")
    needs = (launcher.n_regs, launcher.n_spills, launcher.shared)
    return KernelRecord(name, sha256, Timed(us, chosen, *needs, len(tuner.compile_results), gigabytes))
