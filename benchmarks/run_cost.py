"""What one run costs: the steps of `inductoscope check`, against what torch itself needs for the same program.

    python benchmarks/run_cost.py [FILE...] [--device cpu] [--repeat 3] [--steps eager,generate,lower]

Each sample is a process of its own; the steps of one file are sampled in turns, so that a machine that slows down slows
all of them.  CPU seconds (user and system, with children) are what to compare; wall seconds also show who else was
busy.  It must be run by the interpreter that has torch and Inductoscope.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Step(enum.Enum):
    """What a sample does after its imports; the comment says for which devices."""

    EAGER = "eager"  # Dynamo alone, graphs run eagerly (CPU)
    GENERATE = "generate"  # torch up to generated code, nothing watched, nothing built (CPU)
    COMPILE = "compile"  # plain torch.compile with the C++ compiler (CPU)
    CAPTURE = "capture"
    LOWER = "lower"
    ASSEMBLE = "assemble"  # only where a GPU is simulated


ON_CPU = (Step.EAGER, Step.GENERATE, Step.COMPILE, Step.CAPTURE, Step.LOWER)
ON_SIMULATED = (Step.CAPTURE, Step.LOWER, Step.ASSEMBLE)


@dataclass(frozen=True)
class Cost:
    """Seconds: `start` is CPU of the imports, `cpu` and `wall` are the step itself."""

    start: float
    cpu: float
    wall: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 when a sample failed."""
    arguments = _arguments(argv)
    if arguments.sample:
        print(json.dumps(asdict(sample(Step(arguments.sample), arguments.files[0], arguments.device))))
        return 0
    print(machine())
    failed = False
    for file in arguments.files or _examples(arguments.device):
        costs: dict[Step, list[Cost]] = {step: [] for step in arguments.steps}
        problems: dict[Step, str] = {}
        for _ in range(arguments.repeat):
            for step, found in costs.items():
                try:
                    found.append(in_process(step, file, arguments.device))
                except SampleError as error:
                    problems[step] = str(error)
        print("\n" + table(file.name, {step: found for step, found in costs.items() if found}))
        for step, problem in problems.items():
            print(f"{file.name} {step.value}: {problem}", file=sys.stderr)
        failed = failed or bool(problems)
    return int(failed)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU and wall seconds of one run, by step.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="model files (default: the examples)")
    parser.add_argument("--device", default="cpu", help="cpu or sim:NAME")
    parser.add_argument("--repeat", type=int, default=3, help="samples of each step (default 3)")
    parser.add_argument("--steps", type=_steps, help=f"of {', '.join(step.value for step in Step)}")
    parser.add_argument("--sample", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    arguments.steps = arguments.steps or (ON_CPU if arguments.device == "cpu" else ON_SIMULATED)
    return arguments


def _steps(text: str) -> tuple[Step, ...]:
    return tuple(Step(name) for name in text.split(","))


def _examples(device: str) -> list[Path]:
    files = sorted(EXAMPLES.glob("*.py"))
    return [file for file in files if device != "cpu" or 'REQUIRES = "cuda"' not in file.read_text(encoding="utf-8")]


class SampleError(RuntimeError):
    """A sample's process gave no numbers; the message says why."""


def in_process(step: Step, file: Path, device: str) -> Cost:
    """One sample in a fresh process with empty caches.  Raises `SampleError`."""
    command = [sys.executable, __file__, str(file), "--device", device, "--sample", step.value]
    with tempfile.TemporaryDirectory(prefix="run-cost-") as caches:
        kept = {name: str(Path(caches) / name.lower()) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        done = subprocess.run(command, env={**os.environ, **kept}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SampleError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def sample(step: Step, file: Path, device: str) -> Cost:
    """Do one step in this process.  What the program prints goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        begun = _cpu_seconds()
        from inductoscope.compiler import worker

        worker.greet()
        do = _watched(step, file, device) if step in ON_SIMULATED else _plain(step, file)
        cpu, wall = _cpu_seconds(), time.perf_counter()
        do()
        return Cost(cpu - begun, _cpu_seconds() - cpu, time.perf_counter() - wall)


def _watched(step: Step, file: Path, device: str) -> Callable[[], None]:
    """A run as a worker does it."""
    from inductoscope.compiler import pipeline
    from inductoscope.protocol.messages import Message, Run, RunFailed
    from inductoscope.protocol.report import Rung

    request = Run(run_id=1, target=_target(file), device=device, rung=Rung(step.value))
    last: list[Message] = []

    def do() -> None:
        pipeline.run(request, last.append)
        if isinstance(last[-1], RunFailed):
            raise SystemExit(last[-1].failure.message)

    return do


def _plain(step: Step, file: Path) -> Callable[[], None]:
    """The same program and calls with nobody watching, on the CPU."""
    from inductoscope.compiler import placement, resolve
    from inductoscope.compiler.drive import CallLog, drive
    from inductoscope.compiler.preparation import prepare
    from inductoscope.compiler.teller import Teller
    from inductoscope.compiler.usercode import UserCode
    from inductoscope.protocol.messages import Run
    from inductoscope.protocol.report import Rung

    target, is_user = _target(file), UserCode(also=(str(file),)).is_user
    request = Run(run_id=1, target=target, device="cpu", rung=Rung.LOWER)

    def do() -> None:
        prepared = prepare(request, placement.prepare("cpu", is_user), Teller(1, lambda _: None), is_user)
        program = resolve.compile_program(prepared.placed.program, prepared.conventions, target, is_user)
        with _backend(step):
            error = drive(prepared.placed, program, CallLog("", lambda _: None), target, is_user)
        if error is not None:
            raise error

    return do


@contextlib.contextmanager
def _backend(step: Step) -> Iterator[None]:
    """What answers for torch.compile's default backend: itself, itself without building, or the graph as it is."""
    from inductoscope.compiler.compat import inductor as compat
    from inductoscope.compiler.lower.eager import copied
    from inductoscope.compiler.lower.record_mode import Choices, record_mode, settings

    def generate(backend: Any, model: Any, inputs: Any, *, config_patches: Any = None) -> Any:
        if step is Step.EAGER:
            return model.forward
        runner = copied(model).forward
        with record_mode(Choices()):
            compat.compile_fx(model, list(inputs), settings({**backend.config, **(config_patches or {})}), None)
        return runner

    if step is Step.COMPILE:
        yield
        return
    with compat.replaced(compat.ENTRY, lambda _: generate):
        yield


def _target(file: Path) -> Any:
    from inductoscope.server.targets import scan

    return scan(file.read_text(encoding="utf-8"), str(file.resolve())).targets[0].target


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def table(name: str, costs: dict[Step, list[Cost]]) -> str:
    """Medians by step; the ratio is to torch generating the same code unwatched, where that was sampled."""
    medians = {step: _median(found) for step, found in costs.items()}
    base = medians[Step.GENERATE].cpu if Step.GENERATE in medians else None
    lines = [f"{name:<12} {'samples':>9} {'start cpu':>10} {'cpu s':>8} {'wall s':>8} {'x generate':>11}"]
    for step, cost in medians.items():
        ratio = f"{cost.cpu / base:.2f}" if base else "-"
        row = f"  {step.value:<10} {len(costs[step]):>9} {cost.start:>10.2f} {cost.cpu:>8.2f} {cost.wall:>8.2f}"
        lines.append(f"{row} {ratio:>11}")
    return "\n".join(lines)


def _median(found: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(one, field) for one in found) for field in ("start", "cpu", "wall")))


def machine() -> str:
    """The machine and the versions that the numbers hold for."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in ("inductoscope", "torch", "triton"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}, {', '.join(found)}"
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
