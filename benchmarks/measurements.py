"""Our speed-ups beside those of a plain script for the same models in the same run: what `docs/measurements.md` says.

    python benchmarks/measurements.py FILE... [--device cuda] [--seconds 0.5] [--within 400] [--json RESULTS]
                                       [--times-only]

Each file follows the convention of KernelBench (a class `Model`, `get_inputs()`, perhaps `get_init_inputs()`), or has
`# inductoscope:` comments.  It is measured by `inductoscope bench` and by what one would write by hand: make the model,
compile it, warm up, and take the median of `triton.testing.do_bench` of both, on the CPU the median of a
`torch.utils.benchmark.Timer`.  Files that do not fit into `--within` seconds are left out, which is said.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler import inputs
from inductoscope.protocol import input_spec


@dataclass(frozen=True)
class Plain:
    """What the plain script measured, microseconds a call."""

    eager_us: float
    compiled_us: float

    @property
    def speedup(self) -> float:
        """Eager over compiled."""
        return self.eager_us / self.compiled_us


@dataclass(frozen=True)
class Row:
    """One target, measured both ways; `why` says what is missing."""

    file: str
    target: str
    ours: dict[str, Any] | None
    plain: Plain | None
    seconds: float
    why: str | None = None

    @property
    def apart(self) -> float | None:
        """How far our speed-up is from the plain one, as a part of that."""
        if self.plain is None or self.ours is None or self.ours.get("speedup") is None:
            return None
        return float(self.ours["speedup"]) / self.plain.speedup - 1


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and keep all numbers."""
    arguments = _arguments(argv)
    end = time.monotonic() + arguments.within
    rows: list[Row] = []
    for file in arguments.files:
        if time.monotonic() > end:
            print(f"{file}: left out, since the time is up", flush=True)
            continue
        for row in _both(file, arguments):
            rows.append(row)
            print(_line(row), flush=True)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    known = [abs(row.apart) for row in rows if row.apart is not None]
    print(f"{len(known)} targets both ways; within 3 %: {sum(apart <= 0.03 for apart in known)}")
    return 0


def _both(file: Path, arguments: argparse.Namespace) -> list[Row]:
    begun = time.monotonic()
    command = [sys.executable, "-m", "inductoscope", "bench", str(file), "--device", arguments.device]
    command += ["--seconds", str(arguments.seconds), "--input-sets", "1", "--python", sys.executable, "--json"]
    command += ["--times-only"] if arguments.times_only else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        targets = json.loads(done.stdout)["targets"]
    except (ValueError, KeyError):
        return [Row(file.name, "", None, None, time.monotonic() - begun, done.stderr.strip()[-300:])]
    rows = []
    for target in targets:
        plain, why = None, target["message"]
        if target["benchmark"] is not None and target["benchmark"]["speedup"] is not None:
            try:
                plain = _plain(file, target, arguments.device)
            except Exception as error:  # whatever a model does
                why = f"the plain script raised {type(error).__name__}: {str(error)[:200]}"
        ours = target["benchmark"]
        rows.append(Row(file.name, target["name"], ours, plain, time.monotonic() - begun, why))
        begun = time.monotonic()
    return rows


def _plain(file: Path, target: dict[str, Any], device: str) -> Plain:
    """What one would write by hand for this file; inputs by the text of the first set where a comment gives them."""
    module = _module(file)
    torch.manual_seed(0)
    subject: Any = getattr(module, target["name"].partition(".")[0])
    if isinstance(subject, type):
        subject = subject(*module.get_init_inputs()) if hasattr(module, "get_init_inputs") else subject()
    if isinstance(subject, torch.nn.Module):
        subject = subject.to(device)
    given = [value.to(device) if isinstance(value, torch.Tensor) else value for value in _given(module, target)]
    torch.compiler.reset()
    compiled = torch.compile(subject)
    for _ in range(3):
        subject(*given)
        compiled(*given)
    first = _median_us(lambda: subject(*given), device), _median_us(lambda: compiled(*given), device)
    second = _median_us(lambda: subject(*given), device), _median_us(lambda: compiled(*given), device)
    return Plain(*(sum(pair) / 2 for pair in zip(first, second, strict=True)))


def _given(module: types.ModuleType, target: dict[str, Any]) -> list[Any]:
    """The first set of inputs."""
    first = target["inputs"][0]
    if first["from"] == "comment":
        (call,) = input_spec.expand(input_spec.parse(", ".join(first["args"])))
        return list(inputs.from_spec(call).args or inputs.from_spec(call).kwargs.values())
    return list(module.get_input_sets()[0] if first["from"] == "get_input_sets" else module.get_inputs())


def _median_us(call: Callable[[], object], device: str) -> float:
    if device == "cpu":
        from torch.utils.benchmark import Timer

        timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
        return timer.blocked_autorange(min_run_time=0.2).median * 1e6
    from triton.testing import do_bench

    return float(do_bench(call, warmup=25, rep=200, return_mode="median")) * 1e3


def _module(file: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent))
    try:
        torch.manual_seed(0)
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _line(row: Row) -> str:
    if row.ours is None or row.ours.get("speedup") is None:
        return f"{row.file:42.42} {row.target:20.20} {row.seconds:5.0f} s  none: {row.why}"
    ours = row.ours
    plain = f"{row.plain.speedup:6.3f}" if row.plain is not None else f"none: {row.why}"
    apart = f"{row.apart:+7.1%}" if row.apart is not None else ""
    times = f"{ours['eager']['us']:10.1f} {ours['compiled']['us']:10.1f} us"
    error = f"+-{ours['relative_error']:.1%}"
    agreement = (ours.get("numerics") or {}).get("agreement", "")
    return (
        f"{row.file:42.42} {row.target:20.20} {row.seconds:5.0f} s {times} {ours['speedup']:6.3f} {error} "
        f"plain {plain} {apart} {agreement}"
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--within", type=float, default=400.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--times-only", action="store_true", help="without kernels, which takes half of the time")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
