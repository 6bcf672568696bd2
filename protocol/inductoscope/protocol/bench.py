"""How a benchmark is asked for, and the parts of its result: single rounds, kernels, conditions, where results depart.

Values only.  `report.Benchmark` is the result itself.  All times are microseconds, rates GB/s (1e9 bytes) and TFLOP/s.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

MODES = (
    "default",
    "reduce-overhead",
    "max-autotune",
    "max-autotune-no-cudagraphs",
)
"""The modes of `torch.compile` in torch 2.11 to 2.15 (`torch._inductor.list_mode_options`)."""


class Passes(enum.Enum):
    """What one timed call is."""

    FORWARD = "forward"
    BOTH = "forward+backward"


class Locate(enum.Enum):
    """Whether the first operator whose result departs is looked for, which compiles the program many times."""

    NEVER = "never"
    IF_DIFFERENT = "if-different"


class Detail(enum.Enum):
    """What is looked at after timing: single kernels, how many are launched, or nothing on the device.

    Whoever has once watched a GPU makes later launches of the process slower.
    """

    BARE = "bare"
    TIMES = "times"
    KERNELS = "kernels"


@dataclass(frozen=True)
class BenchOptions:
    """How to measure.

    `mode` replaces the program's own arguments of `torch.compile`; None leaves these as they are.  Rounds are added
    until the speed-up is known to `relative_error` (half of its 95 % interval over itself) or the time is up.
    `input_sets` is how many sets of inputs are measured at most, each compiled anew.
    """

    mode: str | None = None
    passes: Passes = Passes.FORWARD
    relative_error: float = 0.02
    input_sets: int = 4
    locate: Locate = Locate.NEVER
    detail: Detail = Detail.KERNELS


@dataclass(frozen=True)
class RoundTimes:
    """The medians of the two blocks of one round, which were taken right after one another."""

    eager_us: float
    compiled_us: float


@dataclass(frozen=True)
class Sides:
    """The same figure for both sides."""

    eager: float
    compiled: float


@dataclass(frozen=True)
class Ceilings:
    """What the device itself reached: null where it was not measured."""

    copy_gbps: float | None = None
    matmul_tflops: float | None = None
    method: str = ""


class Bound(enum.Enum):
    """What a kernel's time is nearest to."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"  # far below both ceilings


@dataclass(frozen=True)
class Candidate:
    """A configuration or an algorithm that was timed for a kernel while compiling; `chosen` marks the winner."""

    name: str
    us: float
    chosen: bool = False


@dataclass(frozen=True)
class Tuned:
    """An operator that autotuning had several algorithms for, by the sizes that it was asked for."""

    operator: str
    inputs: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class KernelTime:
    """A kernel of one compiled call as the profiler timed it.

    `us` is the median of a launch with its interquartile range over `runs` launches, `launches` how many a call makes,
    `share` its part of the time of all kernels.  `operator` is the ATen operator that launched it, where that is known.
    `predicted_us` is what the model says for one launch, `gbps` and `tflops` are the bytes and operations that Inductor
    counts over the measured time, `of_copy` and `of_matmul` these over the device's ceilings.  What the compiler made
    of it is null for library kernels and on the CPU.  `file` and `line` are the program's line behind it.
    """

    name: str
    us: float
    iqr_us: float
    launches: float
    share: float
    runs: int = 0
    operator: str | None = None
    file: str | None = None
    line: int | None = None
    predicted_us: float | None = None
    predicted_low_us: float | None = None
    predicted_high_us: float | None = None
    gbps: float | None = None
    tflops: float | None = None
    of_copy: float | None = None
    of_matmul: float | None = None
    bound: Bound | None = None
    num_warps: int | None = None
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    limited_by: str | None = None
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class KernelTimes:
    """All kernels of one compiled call, the largest share first; `note` says what limits the account."""

    kernels: tuple[KernelTime, ...] = ()
    method: str = ""
    ceilings: Ceilings = field(default_factory=Ceilings)
    note: str | None = None
    tuned: tuple[Tuned, ...] = ()


@dataclass(frozen=True)
class Change:
    """The compiled time of an earlier result of the same target under the same conditions, and of this one.

    `ratio` is before over now, so above 1 means faster, `low` and `high` what noise leaves possible.  `beyond_noise` is
    the verdict of `rule`.  `before` says what the earlier result was of: a time (ISO 8601, UTC) or a revision.
    """

    before: str
    before_us: float
    now_us: float
    ratio: float
    low: float
    high: float
    beyond_noise: bool
    rule: str


@dataclass(frozen=True)
class Departure:
    """The first operator of the captured graphs whose compiled result departs from the eager one.

    `graph` counts the graphs of the program from 0, `node` is the operator's name in it, `tried` how many parts of the
    program were compiled to find it.  Without an operator `note` says why there is none.
    """

    graph: int = 0
    node: str | None = None
    operator: str | None = None
    file: str | None = None
    line: int | None = None
    max_rel_error: float | None = None
    tried: int = 0
    note: str | None = None
