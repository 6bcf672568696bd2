"""Where the time of a compiled call goes, kernel by kernel, as torch's profiler sees it.

Off the timed path: the profiler makes calls slower, so nothing of this enters a speed-up.  Knows names and times of
kernels, and nothing of the program's lines.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from inductoscope.compiler.bench.tuning import Listener
from inductoscope.compiler.compat.launched import Launched, is_cpp_kernel, marked_cpp_kernels, triton_kernels
from inductoscope.protocol.bench import KernelTime, KernelTimes

_CALLS = 10
_LEAST_SHARE = 0.001
"""Kernels below this part of the time are not listed."""
_ANNOTATIONS = ("Torch-Compiled Region", "ProfilerStep", "CompiledFunction", "## Call", "TorchDynamo")
# What a call of a wrapper spends outside of kernels: no kernels themselves.
_NO_WORK = ("aten::empty", "aten::as_strided", "aten::view", "aten::_reinterpret", "aten::reinterpret", "aten::resolve")


@dataclass(frozen=True)
class Observed:
    """A kernel: the times of its launches in microseconds, how many a call makes, which operator launched it."""

    name: str
    us: tuple[float, ...]
    launches: float
    operator: str | None = None

    @property
    def total_us(self) -> float:
        """Its time in one call."""
        return statistics.median(self.us) * self.launches


@dataclass(frozen=True)
class Account:
    """The kernels of one call, the largest part of the time first, and how they were timed."""

    kernels: tuple[Observed, ...]
    method: str

    @property
    def total_us(self) -> float:
        """The time of all kernels of one call."""
        return sum(kernel.total_us for kernel in self.kernels)


def account(call: Callable[[], object], device: str) -> Account:
    """Profile some calls; what `call` raises comes through."""
    return _on_gpu(call) if device.startswith("cuda") else _on_cpu(call)


def times(found: Account, tuned: Listener) -> KernelTimes:
    """The account with what Triton made of its kernels, and the candidates that were timed for them."""
    total = found.total_us
    launched = triton_kernels()
    listed = tuple(
        _time(kernel, kernel.total_us / total, launched.get(kernel.name), tuned)
        for kernel in found.kernels
        if total and kernel.total_us >= _LEAST_SHARE * total
    )
    note = None if listed else "the profiler saw no kernel in a compiled call"
    return KernelTimes(listed, found.method, note=note, tuned=tuned.algorithms())


def _time(kernel: Observed, share: float, made: Launched | None, tuned: Listener) -> KernelTime:
    low, high = statistics.quantiles(kernel.us, n=4, method="inclusive")[::2] if len(kernel.us) > 1 else (0.0, 0.0)
    return KernelTime(
        name=kernel.name,
        us=statistics.median(kernel.us),
        iqr_us=high - low,
        launches=kernel.launches,
        share=share,
        runs=len(kernel.us),
        operator=kernel.operator,
        num_warps=made.num_warps if made else None,
        registers=made.registers if made else None,
        spills=made.spills if made else None,
        shared_bytes=made.shared_bytes if made else None,
        candidates=tuned.configurations(kernel.name),
    )


def _on_gpu(call: Callable[[], object]) -> Account:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
        for _ in range(_CALLS):
            call()
        torch.cuda.synchronize()
    events = list(profiler.events())
    operators = dict(_operators(events))
    times: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.device_type == torch.autograd.DeviceType.CUDA and not _is_annotation(event):
            times[event.name].append(event.time_range.elapsed_us())
    method = f"torch.profiler (CUPTI), {_CALLS} calls in a row, off the timed path, L2 as the program leaves it"
    return Account(_sorted(times, operators), method)


def _on_cpu(call: Callable[[], object]) -> Account:
    with marked_cpp_kernels(), profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        for _ in range(_CALLS):
            call()
    times: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events():
        if is_cpp_kernel(event.name):
            times[event.name].append(event.cpu_time_total)
        elif event.name.startswith(("aten::", "mkldnn", "mkl::", "onednn")) and not event.name.startswith(_NO_WORK):
            own = event.self_cpu_time_total
            if own > 0:
                times[event.name].append(own)
    method = (
        f"torch.profiler, {_CALLS} calls in a row, off the timed path: C++ kernels with their call from Python, "
        "library operators without what they call"
    )
    return Account(_sorted(times, {}), method)


def _sorted(times: dict[str, list[float]], operators: dict[str, str]) -> tuple[Observed, ...]:
    kernels = (Observed(name, tuple(us), len(us) / _CALLS, operators.get(name)) for name, us in times.items())
    return tuple(sorted(kernels, key=lambda kernel: kernel.total_us, reverse=True))


def _operators(events: list[Any]) -> Iterator[tuple[str, str]]:
    """The innermost ATen operator that launched each kernel, where the profiler connects them (no graph replay)."""
    for event in events:
        if event.device_type == torch.autograd.DeviceType.CPU and event.name.startswith("aten::"):
            yield from ((kernel.name, event.name) for kernel in event.kernels)


def _is_annotation(event: Any) -> bool:
    return bool(getattr(event, "is_user_annotation", False)) or event.name.startswith(_ANNOTATIONS)
