"""The benchmark on small real programs, compiled by torch.

Most use the backend `eager`, which runs Dynamo for real and needs no C++ compiler; one goes through Inductor.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from inductoscope.compiler.bench import Subject, clocks, measure, verdicts
from inductoscope.compiler.bench.stats import Samples
from inductoscope.protocol.report import Agreement, Benchmark

pytestmark = pytest.mark.slow

with_eager_backend = functools.partial(torch.compile, backend="eager")


def run(
    make: Callable[[], Callable[..., object]],
    *args: object,
    compile: Callable[..., Callable[..., object]] = with_eager_backend,
    **kwargs: object,
) -> Benchmark:
    def inputs() -> tuple[tuple[object, ...], dict[str, object]]:
        fresh = tuple(arg() if callable(arg) else arg for arg in args)
        return fresh, dict(kwargs)

    return measure(Subject(make, compile, inputs), "cpu", seconds=0.2, progress=lambda text: None)


def vector() -> torch.Tensor:
    return torch.randn(64)


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


def plain(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return torch.sin(x) * scale


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The processor time of one thread: other work on the machine does not count in it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    real = clocks.clock_for

    def clock_for(device: str) -> clocks.Clock:
        return clocks.CpuClock(time.thread_time) if device == "cpu" else real(device)

    monkeypatch.setattr("inductoscope.compiler.bench.comparison.clock_for", clock_for)
    yield
    torch.set_num_threads(before)


def test_inductor_on_the_cpu_gives_all_figures():
    result = run(Mlp, vector, compile=torch.compile)
    assert result.refused is None
    assert result.eager.us > 0
    assert result.compiled.us > 0
    assert result.eager.iqr_us >= 0
    assert result.eager.runs >= 20
    assert result.speedup_low <= result.speedup <= result.speedup_high
    assert result.speedup == pytest.approx(result.eager.us / result.compiled.us, rel=0.3)
    assert result.compile_ms > 1
    assert (result.graphs, result.graph_breaks) == (1, 0)
    assert result.numerics.agreement in (Agreement.IDENTICAL, Agreement.CLOSE)
    assert "1 thread" in result.where
    assert "median and interquartile range" in result.method


def test_whether_gradients_are_recorded_is_stated():
    assert "recording for backward" in run(Mlp, vector).method
    assert "no gradients recorded" in run(lambda: plain, vector).method


def test_keyword_arguments_reach_the_program():
    result = run(lambda: plain, vector, scale=2.0)
    assert result.refused is None
    assert result.graphs == 1


def test_graph_breaks_are_counted_and_the_rest_is_measured():
    def broken(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    result = run(lambda: broken, vector)
    assert result.refused is None
    assert (result.graphs, result.graph_breaks) == (2, 1)


def test_a_program_that_dynamo_skips_is_refused():
    @torch.compiler.disable
    def hidden(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    def program(x: torch.Tensor) -> torch.Tensor:
        return hidden(x)

    result = run(lambda: program, vector)
    assert "Nothing was compiled" in result.refused
    assert result.speedup is None
    assert result.eager is None


class Counting(torch.nn.Module):
    """Changes an int attribute on each call, which Dynamo guards on."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


def test_a_program_that_compiles_on_each_call_is_refused():
    result = run(Counting, vector)
    assert "compiled again" in result.refused
    assert result.speedup is None


def test_a_program_beyond_its_recompile_limit_is_refused():
    with torch._dynamo.config.patch(recompile_limit=2):
        result = run(Counting, vector)
    assert "a repeated call used none" in result.refused


def failing_backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
    raise NotImplementedError("this backend compiles nothing")


def test_a_backend_whose_failure_is_suppressed_is_refused():
    with torch._dynamo.config.patch(suppress_errors=True):
        result = run(lambda: plain, vector, compile=functools.partial(torch.compile, backend=failing_backend))
    assert "Nothing was compiled" in result.refused
    assert "hidden error" in result.refused


def test_a_backend_that_fails_is_quoted():
    result = run(lambda: plain, vector, compile=functools.partial(torch.compile, backend=failing_backend))
    assert "raised BackendCompilerFailed" in result.refused
    assert "this backend compiles nothing" in result.refused


def test_a_simulated_device_is_refused():
    result = measure(Subject(lambda: plain, torch.compile, lambda: ((vector(),), {})), "sim:H200", 0.1, print)
    assert result.refused == "A simulated device cannot be timed; use --device cpu or a machine with a GPU."


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_a_missing_gpu_is_refused():
    result = measure(Subject(lambda: plain, torch.compile, lambda: ((vector(),), {})), "cuda", 0.1, print)
    assert "no usable CUDA device" in result.refused


def test_a_missing_cxx_compiler_is_named():
    import torch._inductor.config

    with torch._inductor.config.patch({"cpp.cxx": ("/nonexistent/g++",)}):
        result = run(lambda: plain, vector, compile=torch.compile)
    assert "needs a C++ compiler" in result.refused


def test_an_eager_program_that_fails_is_quoted():
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.zeros(3, 3)

    result = run(lambda: wrong, vector)
    assert "The eager program raised RuntimeError" in result.refused


def test_a_compile_error_is_quoted():
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    result = run(lambda: broken, vector, compile=functools.partial(torch.compile, backend="eager", fullgraph=True))
    assert "raised Unsupported" in result.refused


def test_each_side_changes_its_own_state_and_inputs():
    class Accumulating(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += 1
            x.add_(self.seen)
            return x * 2

    result = run(Accumulating, vector)
    assert result.refused is None
    assert result.numerics.agreement is Agreement.IDENTICAL


def test_random_results_are_not_compared():
    result = run(lambda: lambda x: torch.nn.functional.dropout(x, 0.5), vector)
    assert result.numerics.agreement is Agreement.UNKNOWN
    assert "random" in result.numerics.note


def test_nan_on_both_sides_is_agreement():
    result = run(lambda: lambda x: torch.log(x - x.max() - 1), vector)
    assert result.numerics.agreement is Agreement.IDENTICAL


def wrong_backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
    return lambda *args: tuple(value + 0.25 for value in graph(*args))


def test_a_compiler_that_computes_something_else_is_found_out():
    result = run(lambda: plain, vector, compile=functools.partial(torch.compile, backend=wrong_backend))
    assert result.numerics.agreement is Agreement.DIFFERS
    assert result.numerics.max_abs_error == pytest.approx(0.25, rel=1e-4)
    assert result.numerics.compiled_float64_error > 1000 * result.numerics.eager_float64_error
    assert "numerics-mismatch" in [verdict.code for verdict in verdicts(result)]


def laborious_backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
    return lambda *args: [graph(*args) for _ in range(50)][-1]


def test_a_program_that_compiling_slows_down_never_pays_off():
    result = run(Mlp, vector, compile=functools.partial(torch.compile, backend=laborious_backend))
    assert result.speedup < 1
    assert result.calls_to_pay_off is None
    assert "slower-than-eager" in [verdict.code for verdict in verdicts(result)]


def test_a_program_that_compiling_speeds_up_pays_off():
    def wasteful(x: torch.Tensor) -> torch.Tensor:
        for _ in range(200):
            torch.sin(x)  # dead code, which no compiler keeps
        return x + 1

    result = run(lambda: wasteful, vector, compile=torch.compile)
    saved_ms = (result.eager.us - result.compiled.us) / 1e3
    assert result.speedup > 1
    assert result.calls_to_pay_off == math.ceil(result.compile_ms / saved_ms)


class Restless(clocks.CpuClock):
    """A clock on a busy machine: every other block takes ten times as long."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0

    def block(self, call: Callable[[], object], seconds: float) -> Samples:
        self.blocks += 1
        return Samples((100.0 if self.blocks % 4 == 1 else 10.0,), 1)


def test_rounds_that_disagree_give_timings_but_no_speedup(monkeypatch):
    monkeypatch.setattr("inductoscope.compiler.bench.comparison.clock_for", lambda device: Restless())
    result = run(lambda: plain, vector)
    assert "rounds disagree too much" in result.refused
    assert result.speedup is None
    assert result.calls_to_pay_off is None
    assert result.eager.runs == 30  # three times as many as a steady program needs
    assert result.speedup_high > 1.5 * result.speedup_low


def test_the_clock_of_the_cpu_takes_wall_time_and_says_where():
    clock = clocks.clock_for("cpu")
    begun = time.perf_counter()
    samples = clock.block(lambda: sum(range(1000)), 0.02)
    assert samples.calls >= len(samples.us) >= 1
    assert 0 < min(samples.us) * 1e-6 < time.perf_counter() - begun
    assert "1 thread" in clock.where
    assert "wall time" in clock.method


def test_progress_tells_the_stages_in_order():
    told: list[str] = []
    subject = Subject(lambda: plain, with_eager_backend, lambda: ((vector(),), {}))
    measure(subject, "cpu", 0.05, told.append)
    stages = [text.split(",")[0] for text in told]
    assert list(dict.fromkeys(stages)) == [
        "warming up the compiler",
        "running the eager program",
        "compiling",
        "timing",
        "comparing results",
        "looking at kernels",
    ]
