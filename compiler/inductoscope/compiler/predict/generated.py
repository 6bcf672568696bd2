"""Predicted time of a generated kernel: a launch floor plus memory traffic, or arithmetic where that takes longer.

Floor and bandwidth came from 316 kernels of 100 programs timed on an H200.  On 1,441 other kernels, of the programs in
`benchmarks/fidelity_programs` and of KernelBench (torch 2.11, L2 flushed, median), these two alone put 86 % within
1.25x and 97 % within 2x of the measured time.  What a kernel does besides moving memory (loops over rows, atomics,
sorting, transcendental functions) was then fitted to those 1,441: 87 % within 1.25x, 98 % within 2x, predicted over
measured 0.85, 1.04 and 1.22 at the tenth, fiftieth and ninetieth percentile.  Pooling windows stay too low or too high
by up to 4x: how much of their reading the caches serve is not modelled.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from inductoscope.compiler.predict.model import MEASURED, Range, estimate, pace
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, Predicted

_FLOOR_US = 4.75
_OF_BANDWIDTH = 0.78
# Not fitted here: what aligned 16-bit matmuls of an H200 reached (36 shapes).
_OF_TENSOR_PEAK = 0.7
# Plain float32 arithmetic at this share of its peak; an assumption, which matters for no kernel of those timed.
_OF_FLOAT32_PEAK = 0.5
_LOOP_US = 0.8
_TRANSCENDENTAL_US = 8e-7  # a call, all multiprocessors together
_ATOMIC_US = 4.5e-5  # an element
_SORT_US = 5e-6  # an element, times the square of the number of doublings
_CACHED_BYTES = 100e6
_READ_AGAIN = 1.5

# Measured over predicted: nine in ten plain kernels were in this range.
_LOW, _HIGH = 0.8, 1.4
# Long rows are read once a loop, but counted once: up to this.
_HIGH_REREAD = 2.5
# Atomics, spills and random numbers: up to this, with one outlier at 7 (all of them on few addresses).
_HIGH_RISKY = 4.0

_RISKY = re.compile(r"\btl\.atomic_|\b(?:tl|triton_helpers)\.rand")
_RANDOM_LIBRARY = re.compile(r"(?:cu|hip)RAND\b")
_LOOP = re.compile(r"^\s+for r\w*offset in", re.MULTILINE)
_TRANSCENDENTAL = re.compile(r"\b(?:libdevice|tl_math)\.\w+|\btl\.(?:sin|cos|exp|log|sigmoid)\b")
_SIZE = re.compile(r"^\s+(?P<axis>\w+?)numel = (?P<size>\d+)", re.MULTILINE)
_HINTS = re.compile(r"size_hints=\{(?P<hints>[^}]*)\}")
_HINT = re.compile(r"'(?P<axis>\w+)': (?P<size>\d+)")


@dataclass(frozen=True)
class Work:
    """What a kernel does besides being launched.

    `bytes_moved` to and from memory; arithmetic operations, and whether in 16-bit matrix units; calls of transcendental
    functions; elements that are added atomically; loops over rows; `sorting`, elements times the square of the number
    of doublings in a row; and what a block takes by itself for its part on the measured device, however few there are.
    """

    bytes_moved: int
    flops: int = 0
    on_tensor_units: bool = False
    transcendental: int = 0
    atomics: int = 0
    loops: int = 0
    sorting: float = 0.0
    one_block_us: float = 0.0


def generated_kernel(kernel: Kernel, device: Device) -> Predicted | None:
    """The time of `kernel` on `device`, or None where its traffic or its matrix products are not known.

    Spills count once assembled.
    """
    if kernel.bytes_read is None or kernel.bytes_written is None:
        return None
    spills = kernel.resources.spills if kernel.resources is not None else 0
    work = _work(kernel)
    if work.on_tensor_units and not work.flops:
        return None  # matrix products that nobody counted: traffic alone would say too little
    return time_of(work, device, _high(kernel.source or "", work.loops, spills))


def random_numbers(kernel: Kernel, device: Device) -> Predicted | None:
    """The time of a library call that only draws random numbers, such as the seeds of dropout; None for others."""
    if not _RANDOM_LIBRARY.match(kernel.library or "") or kernel.bytes_written is None:
        return None
    return time_of(Work((kernel.bytes_read or 0) + kernel.bytes_written), device, _HIGH_RISKY)


def time_of(work: Work, device: Device, high: float = _HIGH) -> Predicted:
    """The model itself; `high` is how many times longer it may take."""
    reread = _READ_AGAIN if work.loops > 1 and work.bytes_moved > _CACHED_BYTES else 1.0
    memory = work.bytes_moved * reread / (device.bandwidth_gbps * 1e3 * _OF_BANDWIDTH)
    peak, share = (
        (device.tensor_tflops, _OF_TENSOR_PEAK) if work.on_tensor_units else (device.float32_tflops, _OF_FLOAT32_PEAK)
    )
    counted = work.transcendental * _TRANSCENDENTAL_US + work.atomics * _ATOMIC_US + work.sorting * _SORT_US
    compute = work.flops / (peak * 1e6 * share) + counted / pace(device)
    compute = max(compute, work.one_block_us * MEASURED.clock_mhz / device.clock_mhz)
    floor = _FLOOR_US + (_LOOP_US if work.loops else 0.0)
    return estimate(floor, memory, compute, device, Range(_LOW, high))


def _work(kernel: Kernel) -> Work:
    """Read off the kernel's text and Inductor's account of its traffic."""
    source = kernel.source or ""
    rows, columns = _elements(source)
    every = rows * columns
    return Work(
        bytes_moved=(kernel.bytes_read or 0) + (kernel.bytes_written or 0),
        flops=kernel.flops or 0,
        on_tensor_units="tl.dot" in source,
        transcendental=_transcendental(source, rows, every),
        atomics=every if "tl.atomic_" in source else 0,
        loops=len(_LOOP.findall(source)),
        sorting=every * math.log2(max(columns, 2)) ** 2 if "triton_helpers.sort" in source else 0.0,
    )


def _transcendental(source: str, rows: int, every: int) -> int:
    """Calls of transcendental functions: what follows a loop over rows is computed once a row."""
    loops = list(_LOOP.finditer(source))
    if not loops:
        return every * len(_TRANSCENDENTAL.findall(source))
    calls, inside = 0, -1
    for line in source[loops[0].start() :].splitlines():
        indent = len(line) - len(line.lstrip())
        if _LOOP.match(line):
            inside = indent
        elif line.strip() and indent <= inside:
            inside = -1
        calls += len(_TRANSCENDENTAL.findall(line)) * (every if inside >= 0 else rows)
    return calls


def _elements(source: str) -> tuple[int, int]:
    """How many elements a kernel goes through: outside of its reductions, and along them.

    Where a size is symbolic, Inductor's hint of it, a power of two.
    """
    hints = _HINTS.search(source)
    sizes = {match["axis"]: int(match["size"]) for match in _HINT.finditer(hints["hints"] if hints else "")}
    sizes.update((match["axis"], int(match["size"])) for match in _SIZE.finditer(source))
    reduced = {axis for axis in sizes if axis.startswith("r")}
    return math.prod(sizes[axis] for axis in sizes if axis not in reduced), math.prod(sizes[axis] for axis in reduced)


def _high(source: str, loops: int, spills: int) -> float:
    if spills or _RISKY.search(source):
        return _HIGH_RISKY
    return _HIGH_REREAD if loops > 1 else _HIGH
