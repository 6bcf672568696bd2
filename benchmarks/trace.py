"""How long reading a large trace takes, and how much memory, beside tlparse: the same log, one after the other.

usage: python benchmarks/trace.py [--megabytes 100] [--runs 3] [--source LOG]

The log is made of one that was recorded (`tests/traces/recorded.tar.xz`, or SOURCE), repeated under new numbers of
functions until it is large enough.  Each reader is a process of its own, started anew for each run: wall time and CPU
time of the whole process, and the most memory that it had resident.  tlparse writes its pages, which is what it does;
`inductoscope trace` prints its report, once as text and once as JSON.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "tests" / "traces" / "recorded.tar.xz"
_NUMBER = re.compile(rb'"frame_id": (\d+)')
_APART = 1000
"""How far the numbers of one repetition are from those of the next."""


@dataclass(frozen=True)
class Cost:
    """What one process cost: seconds on the clock and on processors, bytes at its peak."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def main() -> None:
    """Generate the log, run both readers, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--source", type=Path, help="a recorded log to repeat")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "trace.log")
        records = generate(log, _source(arguments.source), arguments.megabytes << 20)
        print(f"{log.stat().st_size / 2**20:.0f} MiB, {records} records, {arguments.runs} runs each, medians")
        for name, command in _readers(log, Path(folder)).items():
            costs = [measure(command) for _ in range(arguments.runs)]
            print(
                f"{name:<28} {statistics.median(cost.wall_s for cost in costs):7.2f} s wall "
                f"{statistics.median(cost.cpu_s for cost in costs):7.2f} s CPU "
                f"{max(cost.peak_bytes for cost in costs) / 2**20:8.0f} MiB"
            )


def generate(log: Path, source: bytes, size: int) -> int:
    """Write `source` again and again until the file has `size` bytes; returns the number of records."""
    records = 0
    with log.open("wb") as file:
        for round_number in range(sys.maxsize):
            shift = round_number * _APART
            file.write(_NUMBER.sub(lambda match: b'"frame_id": %d' % (int(match[1]) + shift), source))  # noqa: B023
            records += source.count(b"\nV") + source.startswith(b"V")
            if file.tell() >= size:
                return records
    raise AssertionError("unreachable")


def measure(command: list[str]) -> Cost:
    """Run a command to its end, its output thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command[0]} failed"
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _unit())


def _unit() -> int:
    """Bytes of one unit of `ru_maxrss`: kilobytes on Linux, bytes on macOS."""
    return 1 if sys.platform == "darwin" else 1024


def _readers(log: Path, folder: Path) -> dict[str, list[str]]:
    tools = Path(sys.executable).parent
    ours = [str(tools / "inductoscope"), "trace", str(log)]
    theirs = [str(tools / "tlparse"), str(log), "-o", str(folder / "out"), "--overwrite", "--no-browser"]
    return {
        "tlparse": theirs,
        "tlparse --plain-text": [*theirs, "--plain-text"],
        "inductoscope trace": ours,
        "inductoscope trace --json": [*ours, "--json"],
    }


def _source(path: Path | None) -> bytes:
    if path is not None:
        return path.read_bytes()
    with tarfile.open(ARCHIVE) as archive:
        name = max(name for name in archive.getnames() if name.endswith("/cold.log"))
        member = archive.extractfile(name)
        assert member is not None
        return member.read()


if __name__ == "__main__":
    main()
