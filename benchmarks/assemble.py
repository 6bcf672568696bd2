"""How long assembling takes: kernel by kernel, in parallel, and when nothing changed since the last run.

    python benchmarks/assemble.py [--device sim:H200] [--widths 40] [--processes 2]

Lowers one program of many kernels once, then assembles the same kernels in each way, each time with empty caches of
Triton's and Inductor's own.  Ratios of one run can be compared with each other; times of different runs or machines
cannot.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from inductoscope.compiler import assembling, simgpu
from inductoscope.compiler.lower import Depth, Lowering
from inductoscope.compiler.teller import Teller
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices
from inductoscope.protocol.devices import Device
from inductoscope.protocol.messages import Assembling
from inductoscope.protocol.report import Kernel, KernelLanguage, Rung, Status, TargetReport


@dataclass(frozen=True)
class Took:
    """Wall and processor time in seconds, the latter with that of child processes."""

    wall: float
    cpu: float


def branches(x: torch.Tensor, widths: list[int]) -> list[torch.Tensor]:
    """Branches that cannot be fused with each other: each normalises and mixes columns of a width of its own."""
    found = []
    for width in widths:
        part = x[:, :width]
        part = torch.nn.functional.layer_norm(part, (width,))
        part = torch.nn.functional.gelu(part) + torch.softmax(part.roll(1, -1), -1)
        found.append(part.t().contiguous().sum(-1))
    return found


def kernels_of(device: Device, count: int) -> tuple[Kernel, ...]:
    """The Triton kernels of a program with `count` branches."""
    widths = [300 + 37 * number for number in range(count)]
    with Lowering(UserCode(), device.text, Depth.KERNELS) as lowering:
        torch.compile(branches)(torch.ones(512, max(widths), device="cuda"), widths)
    return tuple(kernel for kernel in lowering.facts().kernels if kernel.language is KernelLanguage.TRITON)


@contextmanager
def empty_caches(folder: Path) -> Iterator[None]:
    """Triton and Inductor have nothing of earlier rounds on disk."""
    for variable in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[variable] = str(folder / variable)
    yield
    for variable in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        shutil.rmtree(folder / variable, ignore_errors=True)


def timed(work: Callable[[], object], folder: Path) -> Took:
    """The time of `work` with empty caches."""
    with empty_caches(folder):
        wall, cpu = time.perf_counter(), _cpu()
        work()
        return Took(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="sim:H200")
    parser.add_argument("--widths", type=int, default=40, help="branches of the program, about three kernels each")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    device = devices.parse(options.device).device
    if device is None:
        parser.error("--device has to be a simulated one")
    simgpu.simulate(device)
    kernels = kernels_of(device, options.widths)
    report = TargetReport("", "", 1, device.text, Rung.LOWER, Status.COMPILED, kernels=kernels)
    sources = {kernel.source for kernel in kernels if kernel.source}

    def assemble(processes: int, store: Path | None) -> TargetReport:
        how = Assembling(processes, str(store) if store is not None else None)
        return assembling.assembled(report, device, Teller(1, lambda message: None), how)

    def one_by_one() -> None:
        for source in sources:
            simgpu.assemble(source, device)

    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name), Path(name) / "store"
        simgpu.assemble(next(iter(sources)), device)  # imports, and what the first compilation of a process sets up
        rows = {
            "kernel by kernel, in this process": timed(one_by_one, folder),
            "in one forked process, nothing kept": timed(lambda: assemble(1, None), folder),
            f"in {options.processes} processes, nothing kept": timed(lambda: assemble(options.processes, None), folder),
            f"in {options.processes} processes, kept": timed(lambda: assemble(options.processes, store), folder),
            "the same again": timed(lambda: assemble(options.processes, store), folder),
        }
        again = assemble(options.processes, store)
        kept = sum(path.stat().st_size for path in store.rglob("*.zip"))
    configs = sum(len(kernel.configs) for kernel in {kernel.source: kernel for kernel in again.kernels}.values())
    print(f"{len(sources)} kernels, {configs} configurations, {device.name}, {kept / 2**20:.1f} MiB kept")
    first = next(iter(rows.values()))
    for title, took in rows.items():
        print(f"{title:<40} {took.wall:7.2f} s, cpu {took.cpu:7.2f} s, {first.wall / took.wall:6.1f} times as fast")


if __name__ == "__main__":
    main()
