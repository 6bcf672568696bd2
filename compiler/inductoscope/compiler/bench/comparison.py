"""The benchmark itself: which call is made when, and what is said about it.

Eager and compiled get instances and inputs of their own with the same values.  After warm-up they are timed in
alternating blocks, so that a machine that slows down slows both.  Must not know files or targets.
"""

from __future__ import annotations

import functools
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from inductoscope.compiler.bench import conditions, evidence, kernels, numerics, stats
from inductoscope.compiler.bench.clocks import Clock, clock_for, timed_ms
from inductoscope.compiler.bench.evidence import Watch
from inductoscope.compiler.bench.lock import exclusive
from inductoscope.compiler.bench.refusal import RefusedError, raised
from inductoscope.compiler.bench.subject import Call, Subject, compiled_call, eager_call, reseed
from inductoscope.compiler.bench.tuning import Listener
from inductoscope.compiler.bench.wide import float64_values
from inductoscope.compiler.compat.bench import Counts, cold_compiler, counts, lacks_cxx_compiler
from inductoscope.protocol.bench import BenchOptions, Detail, KernelTimes, Passes, RoundTimes, Sides
from inductoscope.protocol.report import Agreement, Benchmark, Numerics, OutputError

Progress = Callable[[str], None]

_ROUNDS = 10
_ROUNDS_WHEN_SLOW = 3
_MOST = 3
"""How many times as many rounds are made at most while the speed-up is not known well enough."""
# CUDA graphs want one call to warm up, one to record and one to replay before they are themselves.
_WARM_UP_CALLS = 3
_HOST_CALLS = 20
_HOST_SECONDS = 1.0


def measure(
    subject: Subject, device: str, seconds: float, progress: Progress, options: BenchOptions | None = None
) -> Benchmark:
    """Compare the compiled program with the eager one on a real `device`, with about `seconds` of timed calls of each.

    Never raises for what the program or the compiler does: `Benchmark.refused` then holds a sentence.
    """
    options = options or BenchOptions()
    try:
        clock = clock_for(device)
    except RefusedError as refusal:
        return Benchmark(where=device, method="not measured", refused=str(refusal))

    def waiting() -> None:
        progress("waiting for another benchmark on this device to end")

    with exclusive(clock.key, waiting), cold_compiler():
        try:
            return _Run(subject, device, clock, seconds, progress, options).benchmark()
        except RefusedError as refusal:
            return Benchmark(
                where=clock.where,
                method="not measured",
                refused=str(refusal),
                mode=options.mode,
                passes=subject.passes,
            )


@dataclass(frozen=True)
class _Side:
    """One side after its first call: what that call gave, and how long it took."""

    call: Call
    values: numerics.Values
    names: tuple[str, ...]
    first_ms: float
    draws_random: bool
    records_gradients: bool


@dataclass(frozen=True)
class _Run:
    subject: Subject
    device: str
    clock: Clock
    seconds: float
    progress: Progress
    options: BenchOptions
    tuned: Listener = field(default_factory=Listener)

    def benchmark(self) -> Benchmark:
        state = conditions.now(self.device)
        self.progress("warming up the compiler")
        self._warm_up_compiler()
        self.progress("running the eager program")
        eager = self._eager()
        self.progress("compiling")
        before = counts()
        with self.tuned.listening():
            compiled = self._compiled()
        self._warm_up(compiled)
        compiled_count = counts().since(before)
        evidence.require_compiled(self._trace(compiled, Watch.ENTRIES), compiled_count)
        self._warm_up(eager)
        rounds = self._rounds(eager, compiled)
        told = conditions.sentences(state, conditions.now(self.device), self.device)
        evidence.require_compiled(self._trace(compiled, Watch.ENTRIES), compiled_count)
        hosts = Sides(self._host_us(eager), self._host_us(compiled))
        self.progress("comparing results")
        return self._result(eager, compiled, rounds, _Seen(compiled_count, told, hosts))

    def _warm_up_compiler(self) -> None:
        """Compile a trivial function, so that the compile time is the program's and not that of the first import."""
        try:
            self.subject.compile(_trivial)(torch.zeros(8, device=self.device))
        except Exception as error:
            # A backend may not like so small a program; whether it likes the user's shows soon enough.
            _refuse_without_cxx(error)

    def _eager(self) -> _Side:
        try:
            return self._first_call(eager_call(self.subject))
        except Exception as error:
            refusal = raised("the eager program", error)
            raise RefusedError(f"{refusal} So there is nothing to compare.") from error

    def _compiled(self) -> _Side:
        try:
            return self._first_call(compiled_call(self.subject))
        except Exception as error:
            _refuse_without_cxx(error)
            raise raised("compiling or running the compiled program", error) from error

    def _first_call(self, call: Call) -> _Side:
        reseed()
        state = _random_state(self.device)
        result, first_ms = timed_ms(call, self.clock)
        draws = any(not torch.equal(a, b) for a, b in zip(state, _random_state(self.device), strict=True))
        everything = call.everything(result)
        values, names = numerics.snapshot(everything), numerics.names(everything)
        return _Side(call, values, names, first_ms, draws, _records_gradients(result))

    def _warm_up(self, side: _Side) -> None:
        for _ in range(_WARM_UP_CALLS):
            _called(side.call)

    def _trace(self, side: _Side, watch: Watch) -> evidence.CallTrace:
        return evidence.trace(lambda: _called(side.call), self.device, watch)

    def _launches(self, side: _Side) -> int | None:
        if self.options.detail is Detail.BARE:
            return None
        return self._trace(side, Watch.LAUNCHES).launches

    def _rounds(self, eager: _Side, compiled: _Side) -> tuple[stats.Round, ...]:
        """As many as are needed for the error that is wanted, but not fewer than some and not more than the time."""
        _, pilot_ms = timed_ms(lambda: _called(eager.call), self.clock)
        block = self.seconds / _ROUNDS
        least = _ROUNDS if pilot_ms / 1e3 < block else _ROUNDS_WHEN_SLOW
        before = counts()
        rounds: list[stats.Round] = []
        while len(rounds) < least or (len(rounds) < _MOST * least and not self._is_precise(rounds)):
            self.progress(f"timing, round {len(rounds) + 1}")
            rounds.append(self._round(eager, compiled, block, eager_first=len(rounds) % 2 == 0))
            evidence.require_settled(counts().since(before))
        return tuple(rounds)

    def _is_precise(self, rounds: Sequence[stats.Round]) -> bool:
        return stats.speedup(rounds).relative_error <= self.options.relative_error

    def _round(self, eager: _Side, compiled: _Side, seconds: float, *, eager_first: bool) -> stats.Round:
        order = (eager, compiled) if eager_first else (compiled, eager)
        blocks = [self.clock.block(functools.partial(_called, side.call), seconds) for side in order]
        return stats.Round(*(blocks if eager_first else reversed(blocks)))

    def _result(self, eager: _Side, compiled: _Side, rounds: Sequence[stats.Round], seen: _Seen) -> Benchmark:
        eager_timing = stats.timing([item.eager for item in rounds])
        compiled_timing = stats.timing([item.compiled for item in rounds])
        ratio = stats.speedup(rounds)
        pays_off = stats.calls_to_pay_off(compiled.first_ms, eager_timing, compiled_timing)
        wide = None if eager.draws_random else float64_values(self.subject)
        accounts = self._accounts(eager, compiled)
        return Benchmark(
            where=self.clock.where,
            method=_method(self.clock, len(rounds), eager, self.subject.passes),
            eager=eager_timing,
            compiled=compiled_timing,
            speedup=ratio.median if ratio.steady else None,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            compile_ms=compiled.first_ms,
            calls_to_pay_off=pays_off if ratio.steady else None,
            refused=None if ratio.steady else _busy(ratio),
            graphs=seen.counted.graphs,
            graph_breaks=seen.counted.breaks,
            numerics=_numerics(eager, compiled, wide),
            eager_launches=self._launches(eager),
            compiled_launches=self._launches(compiled),
            eager_peak_bytes=self.clock.peak_bytes(lambda: _called(eager.call)),
            compiled_peak_bytes=self.clock.peak_bytes(lambda: _called(compiled.call)),
            mode=self.options.mode,
            passes=self.subject.passes,
            rounds=tuple(_medians(item) for item in rounds),
            relative_error=ratio.relative_error,
            error_wanted=self.options.relative_error,
            host_us=seen.host_us,
            device_us=_device_us(accounts, self.device),
            kernels=_kernel_times(accounts, self.tuned),
            outputs=() if eager.draws_random else _outputs(eager, compiled, wide),
            conditions=seen.conditions,
        )

    def _host_us(self, side: _Side) -> float:
        """Median time until a call returns, while the device has nothing else to do: what the host spends on it."""
        times: list[float] = []
        until = time.perf_counter() + _HOST_SECONDS
        while len(times) < _HOST_CALLS and (not times or time.perf_counter() < until):
            self.clock.synchronize()
            start = time.perf_counter()
            _called(side.call)
            times.append((time.perf_counter() - start) * 1e6)
        self.clock.synchronize()
        return statistics.median(times)

    def _accounts(self, eager: _Side, compiled: _Side) -> _Accounts | None:
        """Both sides kernel by kernel, where that was asked for and the profiler can tell."""
        if self.options.detail is not Detail.KERNELS:
            return None
        self.progress("looking at kernels")
        return _Accounts(
            kernels.account(lambda: _called(eager.call), self.device),
            kernels.account(lambda: _called(compiled.call), self.device),
        )


@dataclass(frozen=True)
class _Seen:
    """What was noted about the run beside times."""

    counted: Counts
    conditions: tuple[str, ...]
    host_us: Sides


@dataclass(frozen=True)
class _Accounts:
    eager: kernels.Account
    compiled: kernels.Account


def _medians(one: stats.Round) -> RoundTimes:
    return RoundTimes(statistics.median(one.eager.us), statistics.median(one.compiled.us))


def _device_us(accounts: _Accounts | None, device: str) -> Sides | None:
    """The time of all kernels; on the CPU host and device are the same."""
    if accounts is None or not device.startswith("cuda"):
        return None
    return Sides(accounts.eager.total_us, accounts.compiled.total_us)


def _kernel_times(accounts: _Accounts | None, tuned: Listener) -> KernelTimes | None:
    return None if accounts is None else kernels.times(accounts.compiled, tuned)


def _numerics(eager: _Side, compiled: _Side, wide: numerics.Values | None) -> Numerics:
    if eager.draws_random:
        note = "the program draws random numbers, and compiled code draws others than eager code"
        return Numerics(Agreement.UNKNOWN, note=note)
    return numerics.compare(eager.values, compiled.values, wide)


def _outputs(eager: _Side, compiled: _Side, wide: numerics.Values | None) -> tuple[OutputError, ...]:
    return numerics.outputs(eager.names, eager.values, compiled.values, wide)


def _called(call: Call) -> None:
    """One call whose result is dropped at once.  Raises `RefusedError` when it fails, though the first call did not."""
    try:
        call()
    except Exception as error:
        refusal = raised("a repeated call", error)
        raise RefusedError(f"{refusal} So no steady time can be taken.") from error


def _trivial(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def _random_state(device: str) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state()] if device.startswith("cuda") else states


def _records_gradients(result: object) -> bool:
    return any(value.requires_grad for value in numerics.tensors(result))


def _refuse_without_cxx(error: BaseException) -> None:
    if lacks_cxx_compiler(error):
        raise RefusedError(
            "Inductor needs a C++ compiler to compile for the CPU, and none was found: install g++ or clang++, "
            "or name one in the environment variable CXX."
        ) from error


def _busy(ratio: stats.Speedup) -> str:
    """Why there is no figure, though everything was timed."""
    return (
        f"The rounds disagree too much for a figure: in the middle half of them eager takes {ratio.low:.2f} to "
        f"{ratio.high:.2f} times as long as compiled{_load()}. Measure again when nothing else runs."
    )


def _load() -> str:
    """What the system says of other work, where it says anything."""
    cores = os.cpu_count()
    if cores is None or not hasattr(os, "getloadavg"):
        return ""
    return f" (load average {os.getloadavg()[0]:.1f} on {cores} processors)"


def _method(clock: Clock, rounds: int, eager: _Side, passes: Passes) -> str:
    gradients = "forward only, recording for backward" if eager.records_gradients else "no gradients recorded"
    what = "forward and backward pass, gradients dropped before each call" if passes is Passes.BOTH else gradients
    return (
        f"{clock.method}; {rounds} rounds alternating eager and compiled after warm-up; "
        f"median and interquartile range; {what}; "
        "compile time: first call with empty caches, the compiler itself already loaded"
    )
