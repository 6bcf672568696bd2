"""The report: every fact Inductoscope shows, as frozen dataclasses.

`docs/report.md` is the contract of the JSON form; `codec` converts.  Lines are 1-based, columns are 0-based code
points, paths are absolute inside the program (the command line shortens them for people).  This module knows neither
torch nor LSP.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from inductoscope.protocol.bench import Change, Departure, KernelTimes, Passes, RoundTimes, Sides

SCHEMA = 1


class Rung(enum.Enum):
    """How far up the ladder a run goes; each rung costs more and answers more."""

    SCAN = "scan"
    CAPTURE = "capture"
    LOWER = "lower"
    ASSEMBLE = "assemble"
    MEASURE = "measure"

    @property
    def height(self) -> int:
        """Position in the ladder, 0 for `scan`."""
        return list(Rung).index(self)

    def reaches(self, other: Rung) -> bool:
        """Whether a run up to this rung includes `other`."""
        return self.height >= other.height


class Status(enum.Enum):
    """What became of a target."""

    COMPILED = "compiled"
    PARTIAL = "partial"  # compiled with graph breaks
    EAGER = "eager"  # it ran, but nothing was compiled
    FAILED = "failed"
    NO_INPUTS = "no-inputs"
    NOT_RUN = "not-run"


class Severity(enum.Enum):
    """As the editor shows it."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


class Outcome(enum.Enum):
    """What followed a graph break, from mild to worst."""

    SPLIT = "split"  # graph before, graph after
    REST_EAGER = "rest-of-function-eager"
    FUNCTION_EAGER = "whole-function-eager"


class KernelLanguage(enum.Enum):
    """What a kernel is written in; `extern` is a library call without generated code."""

    TRITON = "triton"
    CPP = "cpp"
    EXTERN = "extern"


class Phase(enum.Enum):
    """Which part of a training step a graph or kernel belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Place:
    """A line of source, with the function it stands in where that is known."""

    file: str
    line: int
    function: str | None = None


@dataclass(frozen=True)
class Span:
    """A range of source; columns are 0-based code points, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class InputSet:
    """One call of the target: where its arguments came from and what they look like (`f32[4, 128]`)."""

    origin: str = field(metadata={"json": "from"})
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """One graph that Dynamo handed to the backend; `id` is torch's compile id, such as `0/0`."""

    id: str
    function: str
    file: str
    line: int
    ops: int
    phase: Phase = Phase.FORWARD


@dataclass(frozen=True)
class GraphBreak:
    """One root cause of graph breaks, however often Dynamo met it.

    `frames` is the chain of user calls that led there, outermost first, the broken line last; `inner` is the place
    inside a library when the break is not in the user's own code.
    """

    file: str
    line: int
    end_line: int
    column: int
    end_column: int
    code: str
    reason: str
    explanation: str
    hints: tuple[str, ...]
    link: str | None
    frames: tuple[Place, ...]
    outcome: Outcome
    count: int = 1
    inner: Place | None = None
    fullgraph: bool = False


@dataclass(frozen=True)
class GuardFailure:
    """A guard that failed.  `file` and `line` are those of the line that made the guard, where torch tells."""

    source: str
    kind: str
    expected: str | None
    actual: str | None
    text: str
    family: str
    file: str | None = None
    line: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Recompile:
    """One more compilation of a function, and the guards whose failure asked for it."""

    file: str
    line: int
    function: str
    compile_id: str
    input_set: int | None
    guards: tuple[GuardFailure, ...]


@dataclass(frozen=True)
class RecompileLimit:
    """Dynamo gave up on a function, which runs eagerly from then on."""

    limit: int
    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Specialization:
    """A dimension or number that was pinned to one value."""

    source: str
    value: str
    reason: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class ValueFact:
    """What a line makes while it is compiled: the result of its last operator, once for each distinct shape.

    `op` is the operator's name in the graph, or None where the line stores a value that another line computed.  `name`
    is the variable or attribute (`self.cache`) that the line stores it in, where Dynamo saw it do so: then the value is
    exactly that variable's.  `text` has dtype and sizes (`f32[4, 128]`); a symbolic size stands as torch names it with
    the value it had (`f32[s77=4, 128]`); several tensors stand in parentheses, a symbolic number with its type
    (`int s77=4`).  `stride` is null for contiguous tensors and for several, `device` for numbers.
    """

    file: str
    line: int
    op: str | None
    text: str
    graph: str
    device: str | None
    name: str | None = None
    stride: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GuardFact:
    """One condition under which a compiled version is used again.

    `source` is what is compared, as the user would write it (`self.layers[0].weight`); `kind` is what of it: size,
    stride, dtype, device, requires-grad, dispatch-keys, type, value, identity, key, length, aliasing, shape, condition,
    attribute, dynamic-marks, global-state, other.  In sizes and strides `any` stands for one that may differ.
    `expected` is null where the text says it all, `text` where source, kind and `expected` do.  `internal` marks what
    is torch's own state or bookkeeping, not the program's.  `file` and `line` are those of the line that made the
    guard, null where torch does not tell.
    """

    compile_id: str
    source: str
    kind: str
    expected: str | None
    text: str | None = None
    internal: bool = False
    file: str | None = None
    line: int | None = None


class DimensionState(enum.Enum):
    """Whether another size of a dimension can be served by the same compiled version."""

    STATIC = "static"  # torch took it for constant from the start
    DYNAMIC = "dynamic"
    PINNED = "pinned"  # it could have been dynamic, but a line needs this one size


@dataclass(frozen=True)
class DimensionLimit:
    """A condition on a dimension, in terms of the arguments, and the line that asked for it."""

    text: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Dimension:
    """One dimension of a tensor argument in one compiled version.

    `size` is the size it was compiled with.  `symbol`, `minimum`, `maximum` (null: unbounded) and `multiple_of` are
    what torch knows of a dynamic one; equal symbols mean sizes that have to be equal.
    """

    compile_id: str
    source: str
    dim: int
    state: DimensionState
    size: int | None
    symbol: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    multiple_of: int | None = None
    limits: tuple[DimensionLimit, ...] = ()


class Reuse(enum.Enum):
    """What a call with other inputs would do, as torch's own guard check says."""

    REUSED = "reused"  # a compiled version fits
    RECOMPILES = "recompiles"
    FAILS = "fails"  # the program raises before that is known
    UNKNOWN = "unknown"  # it could not be tried


@dataclass(frozen=True)
class WhatIf:
    """One call that was asked about: `guards` are the first failing one of each compiled version, the newest first.

    `file`, `line` and `function` say which function would be compiled again.
    """

    args: tuple[str, ...]
    outcome: Reuse
    message: str
    guards: tuple[GuardFailure, ...] = ()
    function: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class SkippedFrame:
    """A function that Dynamo did not compile, and why."""

    function: str
    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class DeviceSync:
    """A place where the host looks at a device value, so that a real GPU would be waited for.

    `what` is the sort of look (`item`, `copy to CPU`, an operator whose result depends on data), `expression` the
    program's own words for it, null where the line has several.
    """

    file: str
    line: int
    what: str
    value: str | None
    guessed: bool
    count: int = 1
    reason: str | None = None
    expression: str | None = None


@dataclass(frozen=True)
class GroupOp:
    """One operator inside a fusion group, with the model line that it comes from."""

    op: str
    file: str | None
    line: int | None


class Stage(enum.Enum):
    """How far a graph has come on its way from the program to code."""

    CAPTURED = "captured"  # as Dynamo hands it to the backend
    JOINT = "joint"  # forward and backward in one, as AOTAutograd traces them
    PARTITIONED = "partitioned"  # cut into forward and backward, or traced for inference; before Inductor's passes
    LOWERED = "lowered"  # after Inductor's passes, as it is lowered to kernels


@dataclass(frozen=True)
class FxNode:
    """A node of an FX graph and what it makes.

    `op` is torch's kind of node (placeholder, call_function, output, ...), `target` what is called or read, `args` the
    arguments as torch writes them.  `text` has dtype and sizes as in `ValueFact`, null where the node makes no tensor.
    `file` and `line` are the user's line; a node of a backward graph has the forward line that it belongs to.
    `source` is what the program calls an input (`self.layers[0].weight`).
    """

    name: str
    op: str
    target: str
    args: str
    text: str | None = None
    device: str | None = None
    file: str | None = None
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class FxGraph:
    """The nodes of one graph at one stage; `ops` counts the calls among them, as torch does.

    `body` names a function that an operator of the graph calls (a branch of `cond`, a checkpointed region), by the path
    of its module.  `left_out` is the number of nodes of a graph that is too large to be told node by node.
    """

    graph: str
    stage: Stage
    phase: Phase
    ops: int
    nodes: tuple[FxNode, ...]
    body: str | None = None
    left_out: int = 0


class SavedKind(enum.Enum):
    """What a tensor that waits for the backward pass is."""

    ACTIVATION = "activation"  # made by the forward pass, and kept alive for the backward
    INPUT = "input"  # an argument or a parameter, which is alive anyway
    SIZE = "size"  # a symbolic size, no tensor


@dataclass(frozen=True)
class SavedTensor:
    """A value that the forward pass of a graph keeps for the backward pass, with the forward line that makes it.

    `bytes` is what its elements take, null for a size, and where a symbolic size has no hint.  `base` names the value
    that it is a view of, which is kept alive with it; a view of an input is an input.  `source` is what the program
    calls that input.
    """

    graph: str
    name: str
    kind: SavedKind
    text: str
    bytes: int | None
    op: str | None = None
    file: str | None = None
    line: int | None = None
    base: str | None = None
    source: str | None = None


class RecomputeReason(enum.Enum):
    """Who asked for an operator to be computed again."""

    PARTITIONER = "partitioner"  # torch found that computing is cheaper than reading the result from memory
    CHECKPOINT = "checkpoint"  # the program did (torch.utils.checkpoint)


@dataclass(frozen=True)
class Recomputation:
    """An operator that the backward pass of a graph computes again instead of keeping its result.

    `view` says that it computes nothing, and only looks at the same memory in another way.
    """

    graph: str
    name: str
    op: str
    reason: RecomputeReason
    text: str | None = None
    view: bool = False
    file: str | None = None
    line: int | None = None


class PassStage(enum.Enum):
    """Which of torch's parts ran a pass."""

    DYNAMO = "dynamo"  # on the captured graph, before the backend gets it
    PRE_GRAD = "pre-grad"  # Inductor, on the captured graph
    AUTOGRAD = "autograd"  # AOTAutograd, on what it has traced
    JOINT = "joint"  # Inductor, on forward and backward in one; on the one graph there is, for inference
    FREEZING = "freezing"  # Inductor, with the parameters as constants
    POST_GRAD = "post-grad"  # Inductor, on the forward or the backward graph


@dataclass(frozen=True)
class PatternFact:
    """A pattern that a pass found: how often, how many nodes it matched in all, and the user's lines of those."""

    name: str
    fired: int
    nodes: int
    lines: tuple[Place, ...] = ()


@dataclass(frozen=True)
class PassFact:
    """A pass over an FX graph that changed it or found patterns, with the number of operators (calls) before and after.

    `name` is torch's own name for it.  `fired` is how often its patterns matched, null for a pass without patterns;
    what handles a match may leave the graph as it is, so a pass may have fired and not have `changed` anything.
    `subgraph` names the part of the graph that was changed (a branch of `torch.cond`), null for the graph itself.
    Passes over the joint graph have the phase forward.
    """

    graph: str
    phase: Phase
    name: str
    ops_before: int
    ops_after: int
    fired: int | None = None
    stage: PassStage = PassStage.POST_GRAD
    subgraph: str | None = None
    patterns: tuple[PatternFact, ...] = ()
    changed: bool = True


class LoweringOutcome(enum.Enum):
    """Where the facts about a captured graph's kernels come from."""

    LOWERED = "lowered"  # Inductor was called in this run
    UNCHANGED = "unchanged"  # an earlier run has lowered the same graph, and they are what it found


@dataclass(frozen=True)
class GraphLowering:
    """How a captured graph was lowered.  `why` names what keeps its facts from being used again, null where nothing
    does."""

    graph: str
    outcome: LoweringOutcome
    why: str | None = None


class ProbeOutcome(enum.Enum):
    """What a second size of a dimension would do."""

    DYNAMIC = "dynamic"  # one more compilation, which then serves every size
    REUSED = "reused"  # no further compilation
    RECOMPILES = "recompiles"  # one more compilation for each size
    PINNED = "pinned"  # a line needs the one size
    FAILS = "fails"  # the program raises
    UNKNOWN = "unknown"  # it could not be tried


@dataclass(frozen=True)
class Probe:
    """The shape probe: one dimension of one argument, tried at a second size and, for the outcome, at a third one.

    `source` is the argument as the user would write it.  `together` are further dimensions (`mask.shape[0]`) that have
    to change with this one and did.  `file` and `line` are the place that decides the outcome: the line that pins the
    dimension, makes the guard or raises.
    """

    source: str
    dim: int
    size: int
    tried: int
    outcome: ProbeOutcome
    message: str
    guards: tuple[GuardFailure, ...] = ()
    together: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class ApartFrom:
    """A neighbour that was not fused with this group, and the scheduler's reason."""

    group: str
    reason: str


@dataclass(frozen=True)
class FusionGroup:
    """The scheduler nodes that became one kernel.

    `kind`: pointwise, reduction, persistent-reduction, template, foreach, combo, extern, nop.
    `fusion`: none, vertical, horizontal, template-epilogue, combo.
    """

    id: str
    kernel: str
    kind: str
    fusion: str
    ops: tuple[GroupOp, ...]
    apart_from: tuple[ApartFrom, ...] = ()


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: grid expression, chosen warps and stages, number of candidate configurations.

    `searched` says that further configurations are tried on the card, from the fastest of these on.
    """

    grid: str | None
    num_warps: int | None
    num_stages: int | None
    configs: int
    searched: bool = False


@dataclass(frozen=True)
class Resources:
    """What one thread block needs: 32-bit registers and spills a thread, bytes of shared memory, occupancy 0..1."""

    registers: int
    spills: int
    shared_bytes: int
    occupancy: float | None = None
    limited_by: str | None = None


@dataclass(frozen=True)
class Predicted:
    """A time from a model, in microseconds, with the range that the model claims."""

    us: float
    bound: str
    model: str
    low_us: float | None = None
    high_us: float | None = None


@dataclass(frozen=True)
class PredictedRun:
    """One way to run something, in microseconds from a model: `us` in a row of calls, with the range that is claimed.

    That is the longer of `device_us`, what its kernels take on the device, and `host_us`, what the host takes to launch
    them.  `launches` counts kernels, library calls and copies; `left_out` of them have no prediction, and then all
    times are of the others.
    """

    us: float
    low_us: float
    high_us: float
    device_us: float
    host_us: float
    launches: int
    left_out: int = 0


@dataclass(frozen=True)
class PredictedCall:
    """What a phase of one graph takes, compiled and eager; with `graph` null, of all graphs in one call of the target.

    `times` is how often the graph runs in that call.  `eager` is null where its operators are not known, which `note`
    says why.  The speed-up is eager over compiled, null unless both are known in full.  `every_branch` is set where a
    graph branches or loops by its data (`torch.cond`): each body counts once, whichever of them runs.
    """

    graph: str | None
    phase: Phase
    times: int
    compiled: PredictedRun
    eager: PredictedRun | None
    model: str
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    note: str | None = None
    every_branch: bool = False


@dataclass(frozen=True)
class Measured:
    """A time that was measured: median and interquartile range in microseconds, where and how."""

    us: float
    iqr_us: float
    runs: int
    where: str
    method: str


@dataclass(frozen=True)
class Choice:
    """A way to compute a kernel that Inductor had the choice of.

    `us` is its time in microseconds where somebody timed it; `chosen` is null while nobody can tell which one wins.
    `estimated_us` is what a stated rule takes the time for where nobody did.
    """

    name: str
    us: float | None = None
    chosen: bool | None = None
    estimated_us: float | None = None


class DecisionKind(enum.Enum):
    """What torch decides by timing, apart from the way to compute a kernel and its configuration."""

    PADDING = "padding"  # whether the operands of an unaligned matmul are copied to aligned ones
    SEARCH = "search"  # which configuration a kernel ends up with (coordinate_descent_tuning)
    FUSION = "fusion"  # whether two kernels are faster as one (benchmark_fusion and its kin)


class Basis(enum.Enum):
    """Why a decision came out as it is shown."""

    RECORDED = "recorded"  # so the card decided
    ESTIMATED = "estimated"  # a stated rule estimates the times
    RULE = "rule"  # nothing was timed or estimated


@dataclass(frozen=True)
class Decision:
    """Something that only the card can decide, and what is shown in its place.

    `subject` says of what (`matmul 511x511x511`, a kernel), `candidates` are the open ways with their times, `shown` is
    the name of the one that the report is about, and `text` says all of it in a sentence.
    """

    kind: DecisionKind
    subject: str
    shown: str
    basis: Basis
    candidates: tuple[Choice, ...]
    text: str
    file: str | None = None
    line: int | None = None
    graph: str | None = None


@dataclass(frozen=True)
class LineMapping:
    """A line of a kernel's source and the model line that it computes."""

    kernel_line: int
    file: str
    line: int


@dataclass(frozen=True)
class Artifact:
    """A text or file that the compiler made of a kernel.

    `stage`: ttir, ttgir, llir, then ptx and cubin, or amdgcn and hsaco.  `hash` is the SHA-256 of its bytes, and
    `bytes` how many these are; in texts the kernel's own name counts as `KERNEL`, so that renumbered kernels keep
    theirs.
    """

    stage: str
    hash: str
    bytes: int


@dataclass(frozen=True)
class Remark:
    """What Triton itself remarks on a line of a kernel's source (1-based; null where the line is a library's)."""

    text: str
    kernel_line: int | None = None


@dataclass(frozen=True)
class ConfigFact:
    """One of the configurations that Inductor would try for a kernel, assembled.

    `blocks` are the block sizes.  Registers and spills (32-bit each) are those of a thread, `shared_bytes` those of a
    block, `occupancy` is 0..1; each is null where the compiler did not come so far.  `max_registers` is the limit that
    the configuration sets a thread.  `likely` marks the one that Inductor would launch unless timing on a card favours
    another, or the one that won on the card where that was recorded.  `us` is the time in microseconds that was taken
    there.  `rejected` says why the autotuner would skip it, `problem` why it could not be compiled.
    """

    blocks: dict[str, int]
    num_warps: int
    num_stages: int
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    limited_by: str | None = None
    max_registers: int | None = None
    likely: bool = False
    rejected: str | None = None
    problem: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    remarks: tuple[Remark, ...] = ()
    us: float | None = None


@dataclass(frozen=True)
class Assembler:
    """What the kernels of a report were assembled with; versions and paths are null where a program is not there.

    `disassembler` is the path of NVIDIA's `nvdisasm`, which makes SASS text of a cubin.
    """

    triton: str
    ptxas: str | None = None
    disassembler: str | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel that the compiled program launches.

    `lines` are the user's own lines behind it; `library_lines` places in third-party code.  `bytes_read`,
    `bytes_written` and `flops` are null where they are not known.  `note` says what limits the claim (a choice that
    only a card can make, a guessed value).  `library` names who computes an extern kernel or wrote a template (cuBLAS,
    cuDNN, oneDNN, FlashAttention, CUTLASS), where that is known; `operands` are the tensors that an extern kernel is
    given, as `ValueFact.text` has them, and `tf32` says whether the program lets it round float32 to TF32.  `configs`
    are the assembled candidates, the likely one among them; their artifacts are kept under the key `stored` (see
    `kernel_store`), null where they could not be.
    """

    name: str
    language: KernelLanguage
    phase: Phase
    graph: str
    source: str | None
    lines: tuple[Place, ...]
    library_lines: tuple[Place, ...] = ()
    line_map: tuple[LineMapping, ...] = ()
    bytes_read: int | None = None
    bytes_written: int | None = None
    flops: int | None = None
    launch: Launch | None = None
    resources: Resources | None = None
    predicted: Predicted | None = None
    measured: Measured | None = None
    user_written: bool = False
    note: str | None = None
    library: str | None = None
    operands: tuple[str, ...] = ()
    tf32: bool = False
    choices: tuple[Choice, ...] = ()
    configs: tuple[ConfigFact, ...] = ()
    stored: str | None = None


@dataclass(frozen=True)
class Wrapper:
    """The code that Inductor wrote to call the kernels of one graph."""

    graph: str
    phase: Phase
    language: str
    source: str


@dataclass(frozen=True)
class Memory:
    """Inductor's memory plan for all graphs together."""

    peak_bytes: int | None = None
    buffers: int | None = None
    reused: int | None = None
    inplace: int | None = None


@dataclass(frozen=True)
class CudaGraphs:
    """`status`: off, on, partitioned or skipped."""

    status: str = "off"
    reason: str | None = None


@dataclass(frozen=True)
class CacheFact:
    """What one of torch's caches does with a graph, or with the program, when that is started now.

    `cache` is one of those that `docs/report.md` lists; `result` is hit, miss, bypass (torch refuses the graph), off,
    unknown, or on (in use, with no answer of its own).  `because` are phrases: where an entry lies, what the key
    differs in from the nearest one that was made earlier, or torch's own reason to refuse.  `key` is torch's own key,
    null where no folder has entries to look for.  `file` and `line` are those of an operator that is refused.
    """

    cache: str
    result: str
    because: tuple[str, ...] = ()
    graph: str | None = None
    key: str | None = None
    phase: Phase | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class PhaseTime:
    """Wall time of one phase of the run in milliseconds, measured in the worker (one run).

    `start_ms` counts from the beginning of the run, `parent` is the index in the list of the phase that this one is a
    part of, and `graph` the compilation that it belongs to.
    """

    name: str
    ms: float
    start_ms: float | None = None
    parent: int | None = None
    graph: str | None = None


@dataclass(frozen=True)
class Related:
    """A further place that explains a finding."""

    file: str
    line: int
    message: str


@dataclass(frozen=True)
class Finding:
    """One thing that the user must know: exactly what the editor shows as a diagnostic.

    `code` is a key of `codes.CODES`; `id` torch's own id (`GB0059`); `guard_family` the failed guard with numbers and
    texts replaced.
    """

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    rung: Rung
    id: str | None = None
    link: str | None = None
    count: int = 1
    related: tuple[Related, ...] = ()
    outcome: Outcome | None = None
    guard_family: str | None = None
    function: str | None = None
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timing:
    """One side of a benchmark: median and interquartile range in microseconds a call."""

    us: float
    iqr_us: float
    runs: int


class Agreement(enum.Enum):
    """Whether compiled and eager results are the same, as far as their number format allows."""

    IDENTICAL = "identical"  # bit for bit
    CLOSE = "close"  # apart by rounding only
    DIFFERS = "differs"
    UNKNOWN = "unknown"  # not comparable; `Numerics.note` says why


@dataclass(frozen=True)
class Numerics:
    """How far the compiled results are from the eager ones, over everything that one call returns or writes to.

    A relative error is the largest absolute one over the largest magnitude in the eager tensor; the largest of all
    tensors is given.  The two `*_float64_error` are relative errors against the same program run in float64, null
    where it cannot be run so.  Errors are null where no float results were compared, or where they are not finite.
    """

    agreement: Agreement
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    eager_float64_error: float | None = None
    compiled_float64_error: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class OutputError:
    """How far one value of the compiled program is from the eager one; errors as in `Numerics`.

    `name` is the place of the value: `result[0].logits`, `argument 0`, `gradient of weight`; `form` its dtype
    and sizes.
    """

    name: str
    form: str
    agreement: Agreement
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    eager_float64_error: float | None = None
    compiled_float64_error: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """Compiled against eager.  `refused` holds the sentence when no honest speed-up can be given.

    `speedup` is the median of the ratios of single rounds, `speedup_low` and `speedup_high` are their quartiles.
    `compile_ms` is the first call of the compiled program, `calls_to_pay_off` null when compiling never pays off.
    `graphs` and `graph_breaks` are Dynamo's own counts for this program.  Launches are kernel launches of one call and
    peaks bytes of device memory above what was allocated before it; null on the CPU.  `inputs` are the arguments,
    `mode` is the mode of `torch.compile` that was asked for in place of the program's own arguments.  `rounds` are the
    single rounds; `relative_error` is half of the speed-up's 95 % interval over itself, `error_wanted` what was asked
    for.  `host_us` is the time until a call has issued its work, `device_us` that of its kernels, microseconds each.
    `conditions` are sentences about the machine meanwhile.  `change` is what became of an earlier result.
    """

    where: str
    method: str
    eager: Timing | None = None
    compiled: Timing | None = None
    speedup: float | None = None
    compile_ms: float | None = None
    calls_to_pay_off: int | None = None
    refused: str | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    graphs: int | None = None
    graph_breaks: int | None = None
    numerics: Numerics | None = None
    eager_launches: int | None = None
    compiled_launches: int | None = None
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    inputs: tuple[str, ...] = ()
    mode: str | None = None
    passes: Passes = Passes.FORWARD
    rounds: tuple[RoundTimes, ...] = ()
    relative_error: float | None = None
    error_wanted: float | None = None
    host_us: Sides | None = None
    device_us: Sides | None = None
    kernels: KernelTimes | None = None
    outputs: tuple[OutputError, ...] = ()
    departure: Departure | None = None
    conditions: tuple[str, ...] = ()
    change: Change | None = None


@dataclass(frozen=True)
class Cached:
    """The report was made by an earlier run of the same program: when that ended (ISO 8601, UTC), and how many seconds
    before it was looked up.  Its lines are those of the program as it is now, its times those of then."""

    at: str
    age_s: float


@dataclass(frozen=True)
class TargetReport:
    """Everything known about one target; `notes` are sentences about the limits of what is shown, `untried` one about
    the sizes that there was no time to try.  `benchmark` is that of the first set of inputs, `benchmarks` those of
    further ones.

    `run_ms` is the wall time from the request to this report, measured in the worker (one run); the phases without a
    parent add up to it, but for what lies between them.
    """

    file: str
    name: str
    line: int
    device: str
    rung: Rung
    status: Status
    message: str | None = None
    inputs: tuple[InputSet, ...] = ()
    graphs: tuple[Graph, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    recompile_limit: RecompileLimit | None = None
    specializations: tuple[Specialization, ...] = ()
    values: tuple[ValueFact, ...] = ()
    guards: tuple[GuardFact, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    what_if: tuple[WhatIf, ...] = ()
    probes: tuple[Probe, ...] = ()
    untried: str | None = None
    fx_graphs: tuple[FxGraph, ...] = ()
    passes: tuple[PassFact, ...] = ()
    saved: tuple[SavedTensor, ...] = ()
    recomputed: tuple[Recomputation, ...] = ()
    skipped: tuple[SkippedFrame, ...] = ()
    syncs: tuple[DeviceSync, ...] = ()
    fusion_groups: tuple[FusionGroup, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    predicted_calls: tuple[PredictedCall, ...] = ()
    decisions: tuple[Decision, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    memory: Memory = Memory()
    cudagraphs: CudaGraphs = CudaGraphs()
    lowerings: tuple[GraphLowering, ...] = ()
    caches: tuple[CacheFact, ...] = ()
    phases: tuple[PhaseTime, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    benchmark: Benchmark | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    run_ms: float | None = None
    assembler: Assembler | None = None
    cached: Cached | None = None


@dataclass(frozen=True)
class Report:
    """What `inductoscope check --json` prints.

    `torch`, `triton` and `python` are null when no worker could be started; `message` says what could not be checked.
    """

    inductoscope: str
    torch: str | None
    triton: str | None
    python: str | None
    targets: tuple[TargetReport, ...]
    message: str | None = None
    schema: int = SCHEMA
