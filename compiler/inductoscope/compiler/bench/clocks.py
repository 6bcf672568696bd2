"""How time is taken on each kind of device, and the words that say so.

A clock knows a device and nothing of compilation; it must not decide what is compared with what.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch.utils.benchmark import Timer

from inductoscope.compiler.bench.refusal import RefusedError
from inductoscope.compiler.bench.stats import Samples

_CUDA_WARM_UP_MS = 10.0


class Clock(Protocol):
    """Takes the time of a call on one device."""

    @property
    def where(self) -> str:
        """The device in words."""

    @property
    def key(self) -> str:
        """The device itself, as long as the machine runs: two clocks with the same key disturb each other."""

    @property
    def method(self) -> str:
        """How the samples are taken, in words."""

    def block(self, call: Callable[[], object], seconds: float) -> Samples:
        """Call again and again for about `seconds`, at least once."""

    def synchronize(self) -> None:
        """Wait until all work that was started has ended."""

    def peak_bytes(self, call: Callable[[], object]) -> int | None:
        """Device memory that one call needs above what was allocated before; None where it is not counted."""


def clock_for(device: str) -> Clock:
    """The clock of a device (`cpu`, `cuda`, `cuda:1`).  Raises `RefusedError` where nothing can be timed."""
    if device.startswith("sim:"):
        raise RefusedError("A simulated device cannot be timed; use --device cpu or a machine with a GPU.")
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return CpuClock()
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise RefusedError("This machine has no usable CUDA device; use --device cpu or a machine with a GPU.")
        return CudaClock(int(index) if index.isdecimal() else torch.cuda.current_device())
    raise RefusedError(f"Timing on '{device}' is not supported; use --device cpu or --device cuda.")


def timed_ms(call: Callable[[], object], clock: Clock) -> tuple[object, float]:
    """What one call returns, and its wall time in milliseconds, the device's work included."""
    clock.synchronize()
    start = time.perf_counter()
    result = call()
    clock.synchronize()
    return result, (time.perf_counter() - start) * 1e3


class CpuClock:
    """Wall time on the CPU, with as many threads as torch is set to use."""

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        """`timer` gives seconds; another one than wall time serves where the machine is shared."""
        self._timer = timer
        self._threads = torch.get_num_threads()

    @property
    def where(self) -> str:
        """Processor and number of threads."""
        return f"{_cpu_name()}, {self._threads} thread{'' if self._threads == 1 else 's'}"

    @property
    def key(self) -> str:
        """All processors together."""
        return "cpu"

    @property
    def method(self) -> str:
        """How the samples are taken."""
        return "wall time by torch.utils.benchmark.Timer.blocked_autorange"

    def block(self, call: Callable[[], object], seconds: float) -> Samples:
        """Each sample is the mean of as many calls as keep the timer's own cost below 0.1 %."""
        timer = Timer("call()", globals={"call": call}, timer=self._timer, num_threads=self._threads)
        measurement = timer.blocked_autorange(min_run_time=seconds)
        calls = measurement.number_per_run * len(measurement.raw_times)
        return Samples(tuple(seconds * 1e6 for seconds in measurement.times), calls)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def peak_bytes(self, call: Callable[[], object]) -> int | None:
        """torch does not count host memory."""
        return None


class CudaClock:
    """Time between events on a GPU, the second-level cache flushed before each call."""

    def __init__(self, index: int) -> None:
        try:
            from triton.testing import do_bench
        except ImportError as error:
            raise RefusedError("Timing on a GPU needs Triton, which is not installed: pip install triton.") from error
        torch.cuda.set_device(index)
        self._index = index
        self._do_bench = do_bench

    @property
    def where(self) -> str:
        """The name of the card."""
        return str(torch.cuda.get_device_name(self._index))

    @property
    def key(self) -> str:
        """The card's own id, which stays the same under CUDA_VISIBLE_DEVICES, else its index."""
        return f"cuda-{getattr(torch.cuda.get_device_properties(self._index), 'uuid', self._index)}"

    @property
    def method(self) -> str:
        """How the samples are taken."""
        return "time between CUDA events by triton.testing.do_bench, L2 cache flushed before each call"

    def block(self, call: Callable[[], object], seconds: float) -> Samples:
        """Each sample is one call."""
        times = self._do_bench(call, warmup=_CUDA_WARM_UP_MS, rep=seconds * 1e3, return_mode="all")
        return Samples(tuple(ms * 1e3 for ms in times), len(times))

    def synchronize(self) -> None:
        """Wait for the card."""
        torch.cuda.synchronize(self._index)

    def peak_bytes(self, call: Callable[[], object]) -> int | None:
        """As torch's caching allocator counts it."""
        self.synchronize()
        torch.cuda.reset_peak_memory_stats(self._index)
        before = torch.cuda.memory_allocated(self._index)
        result = call()
        self.synchronize()
        del result
        return int(torch.cuda.max_memory_allocated(self._index) - before)


def _cpu_name() -> str:
    """The processor's name where the system tells it, else its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"
