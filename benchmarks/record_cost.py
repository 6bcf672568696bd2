"""What being recorded costs a program: compiling, and every step after it, with and without `inductoscope run`.

usage: python benchmarks/record_cost.py [--rounds 5] [--layers 4] [--steps 2000] [--backend inductor]

The program compiles a small transformer, forward and backward, with empty caches, and then makes steps.  Each round
starts it plainly and recorded, in turn, so that both meet the same load.  Seconds are processor time, which other
programs on the machine disturb least: of the program itself, and with its C++ compilers.  Given are medians of the
rounds, and the median of the differences within a round with its quartiles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from inductoscope.server.recorded_run import environment

PROGRAM = """
import json, os, resource, sys, time
import torch

layers, steps, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
layer = lambda: torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
model = torch.compile(torch.nn.Sequential(*(layer() for _ in range(layers))), backend=backend)
data = torch.randn(2, 8, 64)

def spent():
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime

before = spent()
model(data).sum().backward()
after = spent()
times = []
for _ in range(steps):
    start = time.perf_counter_ns()
    model(data)
    times.append(time.perf_counter_ns() - start)
times.sort()
own, children = after[0] - before[0], after[1] - before[1]
print(json.dumps({"compile": own, "with_compilers": own + children, "step_us": times[len(times) // 2] / 1e3}))
"""
FIELDS = {
    "compile": "compiling, CPU seconds of the program",
    "with_compilers": "compiling, CPU seconds with C++ compilers",
    "step_us": "a step afterwards, microseconds",
}


def main() -> None:
    """Run the rounds, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--backend", default="inductor")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "program.py")
        program.write_text(PROGRAM)
        given = [str(program), str(arguments.layers), str(arguments.steps), arguments.backend]
        plain, recorded, sizes = [], [], []
        for round_number in range(arguments.rounds):
            folder = Path(scratch, f"records{round_number}")
            folder.mkdir()
            plain.append(run(given, dict(os.environ), scratch))
            recorded.append(run(given, environment(folder, os.environ), scratch))
            sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
            print(f"round {round_number + 1}: {plain[-1]} plain, {recorded[-1]} recorded", flush=True)
    print(f"{arguments.rounds} rounds, {statistics.median(sizes) / 2**20:.1f} MiB of records each")
    for field, title in FIELDS.items():
        without, with_it = ([one[field] for one in side] for side in (plain, recorded))
        more = sorted(100 * (b - a) / a for a, b in zip(without, with_it, strict=True))
        low, middle, high = statistics.quantiles(more, n=4) if len(more) > 1 else (more[0],) * 3
        print(
            f"{title:<42} {statistics.median(without):9.2f} -> {statistics.median(with_it):9.2f}  "
            f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"
        )


def run(arguments: list[str], env: dict[str, str], scratch: str) -> dict[str, float]:
    """One run with empty caches; what it says of itself."""
    with tempfile.TemporaryDirectory(dir=scratch) as cache:
        env = {**env, "TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        done = subprocess.run([sys.executable, *arguments], env=env, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
