"""What a run costs when its graphs were lowered before: CPU seconds without a store, with a full one, and their ratio.

    python benchmarks/unchanged_graphs.py [FILE...] [--device cpu] [--repeat 3]

Each sample is forked from one process that has imported torch, so that imports are not in the numbers, and what is
compared is sampled in turns.  `lowering` is what Inductor takes of a run, or the store in its place.  To be run by
the interpreter that has torch and Inductoscope.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inductoscope.compiler import pipeline
from inductoscope.protocol.messages import Reuse, Run, RunDone
from inductoscope.protocol.report import LoweringOutcome, Rung, TargetReport
from inductoscope.server.targets import scan

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DEFAULT = ("gpt_block", "conv_bn", "step_mlp", "llama_tiny")


@dataclass(frozen=True)
class Sample:
    """CPU and wall seconds of a run, the share of wall time that went into lowering, and how many graphs it lowered."""

    cpu: float
    wall: float
    lowering: float
    graphs: int
    lowered: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 when a sample failed."""
    arguments = _arguments(argv)
    files = arguments.files or [EXAMPLES / f"{name}.py" for name in DEFAULT]
    print(f"{'program':<14} {'graphs':>6} {'without':>9} {'with':>9} {'ratio':>6}   lowering alone")
    failed = False
    for file in files:
        with tempfile.TemporaryDirectory(prefix="unchanged-") as store:
            in_fork(file, arguments.device, store)
            pairs = [
                (in_fork(file, arguments.device, None), in_fork(file, arguments.device, store))
                for _ in range(arguments.repeat)
            ]
        samples = [(without, kept) for without, kept in pairs if without is not None and kept is not None]
        failed = failed or len(samples) < len(pairs)
        if samples:
            print(_row(file.stem, samples))
    return int(failed)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU seconds of a run whose graphs were lowered before.")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help=f"model files (default: {', '.join(DEFAULT)})"
    )
    parser.add_argument("--device", default="cpu", help="cpu or sim:NAME")
    parser.add_argument("--repeat", type=int, default=3, help="samples of each (default 3)")
    return parser.parse_args(argv)


def _row(name: str, samples: Sequence[tuple[Sample, Sample]]) -> str:
    without, kept = ([pair[side] for pair in samples] for side in (0, 1))
    cpu = [statistics.median(one.cpu for one in side) for side in (without, kept)]
    lowering = [statistics.median(one.lowering for one in side) for side in (without, kept)]
    graphs = f"{kept[0].graphs - kept[0].lowered}/{kept[0].graphs}"
    return (
        f"{name:<14} {graphs:>6} {cpu[0]:>7.2f} s {cpu[1]:>7.2f} s {cpu[0] / cpu[1]:>5.1f}x   "
        f"{lowering[0]:.2f} s -> {lowering[1]:.2f} s of wall time"
    )


def in_fork(file: Path, device: str, store: str | None) -> Sample | None:
    """One run in a process of its own with empty caches; None where it failed, which it says itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(_child(writing, file, device, store))
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return Sample(**json.loads(text)) if text else None


def _child(writing: int, file: Path, device: str, store: str | None) -> int:
    os.dup2(2, 1)  # what the program prints is nobody's result
    with tempfile.TemporaryDirectory(prefix="unchanged-") as caches:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            os.environ[name] = str(Path(caches) / name.lower())
        sample = _sample(file, device, store)
    with os.fdopen(writing, "w") as answer:
        answer.write(json.dumps(asdict(sample)))
    return 0


def _sample(file: Path, device: str, store: str | None) -> Sample:
    target = next(iter(scan(file.read_text(encoding="utf-8"), str(file)).targets)).target
    sent: list[Any] = []
    wall, cpu = time.perf_counter(), time.process_time()
    pipeline.run(Run(1, target, device, Rung.LOWER, reuse=Reuse(store)), sent.append)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if not isinstance(sent[-1], RunDone):
        raise SystemExit(f"{file}: {sent[-1].failure.message}")
    report = sent[-1].report
    lowered = sum(one.outcome is LoweringOutcome.LOWERED for one in report.lowerings)
    return Sample(cpu, wall, _lowering(report), len(report.lowerings), lowered)


def _lowering(report: TargetReport) -> float:
    """Wall seconds of what stands where Dynamo calls its backend."""
    return sum(phase.ms for phase in report.phases if phase.name in ("backend", "unchanged graph")) / 1e3


if __name__ == "__main__":
    sys.exit(main())
