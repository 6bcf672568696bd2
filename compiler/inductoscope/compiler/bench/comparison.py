"""The benchmark itself: which call is made when, and what is said about it.

Eager and compiled get instances and inputs of their own with the same values.  After warm-up they are timed in
alternating blocks, so that a machine that slows down slows both.  Must not know files or targets.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from inductoscope.compiler.bench import evidence, numerics, stats
from inductoscope.compiler.bench.clocks import Clock, clock_for, timed_ms
from inductoscope.compiler.bench.refusal import RefusedError, in_short
from inductoscope.compiler.bench.subject import Call, Subject, compiled_call, eager_call, reseed
from inductoscope.compiler.bench.wide import float64_values
from inductoscope.compiler.compat.bench import Counts, cold_compiler, counts, lacks_cxx_compiler
from inductoscope.protocol.report import Agreement, Benchmark, Numerics

Progress = Callable[[str], None]

_ROUNDS = 10
_ROUNDS_WHEN_SLOW = 3
# CUDA graphs want one call to warm up, one to record and one to replay before they are themselves.
_WARM_UP_CALLS = 3


def measure(subject: Subject, device: str, seconds: float, progress: Progress) -> Benchmark:
    """Compare the compiled program with the eager one on a real `device`, with about `seconds` of timed calls of each.

    Never raises for what the program or the compiler does: `Benchmark.refused` then holds a sentence.
    """
    try:
        clock = clock_for(device)
    except RefusedError as refusal:
        return Benchmark(where=device, method="not measured", refused=str(refusal))
    with cold_compiler():
        try:
            return _Run(subject, device, clock, seconds, progress).benchmark()
        except RefusedError as refusal:
            return Benchmark(where=clock.where, method="not measured", refused=str(refusal))


@dataclass(frozen=True)
class _Side:
    """One side after its first call: what that call gave, and how long it took."""

    call: Call
    values: numerics.Values
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

    def benchmark(self) -> Benchmark:
        self.progress("warming up the compiler")
        self._warm_up_compiler()
        self.progress("running the eager program")
        eager = self._eager()
        self.progress("compiling")
        before = counts()
        compiled = self._compiled()
        self._warm_up(compiled)
        compiled_count = counts().since(before)
        evidence.require_compiled(self._trace(compiled), compiled_count)
        self._warm_up(eager)
        rounds = self._rounds(eager, compiled)
        seen = self._trace(compiled)
        evidence.require_compiled(seen, compiled_count)
        self.progress("comparing results")
        return self._result(eager, compiled, rounds, compiled_count, seen)

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
            raise RefusedError(
                f"The eager program raised {in_short(error)}, so there is nothing to compare."
            ) from error

    def _compiled(self) -> _Side:
        try:
            return self._first_call(compiled_call(self.subject))
        except Exception as error:
            _refuse_without_cxx(error)
            raise RefusedError(f"Compiling or running the compiled program raised {in_short(error)}.") from error

    def _first_call(self, call: Call) -> _Side:
        reseed()
        state = _random_state(self.device)
        result, first_ms = timed_ms(call, self.clock)
        draws = any(not torch.equal(a, b) for a, b in zip(state, _random_state(self.device), strict=True))
        values = numerics.snapshot((result, call.inputs))
        return _Side(call, values, first_ms, draws, _records_gradients(result))

    def _warm_up(self, side: _Side) -> None:
        for _ in range(_WARM_UP_CALLS):
            _called(side.call)

    def _trace(self, side: _Side) -> evidence.CallTrace:
        return evidence.trace(lambda: _called(side.call), self.device)

    def _rounds(self, eager: _Side, compiled: _Side) -> tuple[stats.Round, ...]:
        _, pilot_ms = timed_ms(lambda: _called(eager.call), self.clock)
        block = self.seconds / _ROUNDS
        count = _ROUNDS if pilot_ms / 1e3 < block else _ROUNDS_WHEN_SLOW
        before = counts()
        rounds = []
        for index in range(count):
            self.progress(f"timing, round {index + 1} of {count}")
            rounds.append(self._round(eager, compiled, block, eager_first=index % 2 == 0))
            evidence.require_settled(counts().since(before))
        return tuple(rounds)

    def _round(self, eager: _Side, compiled: _Side, seconds: float, *, eager_first: bool) -> stats.Round:
        order = (eager, compiled) if eager_first else (compiled, eager)
        blocks = [self.clock.block(functools.partial(_called, side.call), seconds) for side in order]
        return stats.Round(*(blocks if eager_first else reversed(blocks)))

    def _result(
        self,
        eager: _Side,
        compiled: _Side,
        rounds: Sequence[stats.Round],
        counted: Counts,
        seen: evidence.CallTrace,
    ) -> Benchmark:
        eager_timing = stats.timing([item.eager for item in rounds])
        compiled_timing = stats.timing([item.compiled for item in rounds])
        ratio = stats.speedup(rounds)
        pays_off = stats.calls_to_pay_off(compiled.first_ms, eager_timing, compiled_timing)
        return Benchmark(
            where=self.clock.where,
            method=_method(self.clock, len(rounds), eager),
            eager=eager_timing,
            compiled=compiled_timing,
            speedup=ratio.median if ratio.steady else None,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            compile_ms=compiled.first_ms,
            calls_to_pay_off=pays_off if ratio.steady else None,
            refused=None if ratio.steady else _busy(ratio),
            graphs=counted.graphs,
            graph_breaks=counted.breaks,
            numerics=self._numerics(eager, compiled),
            eager_launches=self._trace(eager).launches,
            compiled_launches=seen.launches,
            eager_peak_bytes=self.clock.peak_bytes(lambda: _called(eager.call)),
            compiled_peak_bytes=self.clock.peak_bytes(lambda: _called(compiled.call)),
        )

    def _numerics(self, eager: _Side, compiled: _Side) -> Numerics:
        if eager.draws_random:
            note = "the program draws random numbers, and compiled code draws others than eager code"
            return Numerics(Agreement.UNKNOWN, note=note)
        return numerics.compare(eager.values, compiled.values, float64_values(self.subject))


def _called(call: Call) -> None:
    """One call whose result is dropped at once.  Raises `RefusedError` when it fails, though the first call did not."""
    try:
        call()
    except Exception as error:
        raise RefusedError(f"A repeated call raised {in_short(error)}, so no steady time can be taken.") from error


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


def _method(clock: Clock, rounds: int, eager: _Side) -> str:
    gradients = "forward only, recording for backward" if eager.records_gradients else "no gradients recorded"
    return (
        f"{clock.method}; {rounds} rounds alternating eager and compiled after warm-up; "
        f"median and interquartile range; {gradients}; "
        "compile time: first call with empty caches, the compiler itself already loaded"
    )
