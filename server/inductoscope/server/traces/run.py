"""What a trace tells, as one value: the reports of its functions, and what is only seen over the whole run."""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import GraphBreak, TargetReport

SCHEMA = 1


@dataclass(frozen=True)
class ProcessFacts:
    """One process of a run; `began` and `ended` are times of day."""

    label: str
    file: str
    number: int
    rank: int | None
    torch: str | None
    python: str | None
    began: str
    ended: str
    compilations: int
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompilationFacts:
    """One compilation.  Times are in milliseconds; `cache` sums up what the caches said: hit, miss, mixed or null.

    `resumed` says that this is what follows a graph break in the function, from `line` on; `result` what came of it:
    compiled, nothing to compile, gave up, or the kind of the error.
    """

    id: str
    process: str
    function: str
    file: str
    line: int
    resumed: bool
    attempts: int
    ops: int | None
    kernels: int
    ms: float
    dynamo_ms: float
    aot_ms: float
    inductor_ms: float
    backward_ms: float
    cache: str | None
    result: str
    clock: str


@dataclass(frozen=True)
class Call:
    """A line of the program that called a compiled function, and the compilations that this started.

    `file` and `line` are null where no line of the program is in the stack.  Without `exact` it is a line above the
    call, since torch leaves out the last callers of decorated functions.
    """

    file: str | None
    line: int | None
    function: str | None
    text: str
    ms: float
    exact: bool
    compilations: tuple[CompilationFacts, ...]


@dataclass(frozen=True)
class DistinctBreak:
    """One root cause of graph breaks over all processes, and the processes and compilations that met it."""

    found: GraphBreak
    processes: tuple[str, ...]
    compilations: int


@dataclass(frozen=True)
class Step:
    """One version in the story of a function: which guard asked for it, where that was made, what it cost."""

    compile_id: str
    process: str
    clock: str
    guard: str | None
    file: str | None
    line: int | None
    others: int
    ms: float
    result: str
    cache: str | None


@dataclass(frozen=True)
class Story:
    """A function that was compiled more than once, version by version; `resumed`: what follows a graph break in it."""

    function: str
    file: str
    line: int
    resumed: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class FunctionCost:
    """What compiling one function cost, in milliseconds.

    Cold are compilations whose caches missed, warm those that hit; a null says that there was none.
    """

    function: str
    file: str
    line: int
    compilations: int
    ms: float
    dynamo_ms: float
    aot_ms: float
    inductor_ms: float
    backward_ms: float
    cold_ms: float | None
    warm_ms: float | None


@dataclass(frozen=True)
class PhaseSum:
    """A phase of compiling over the whole run: how often, and how long in milliseconds without its parts."""

    name: str
    count: int
    ms: float


@dataclass(frozen=True)
class CacheMiss:
    """A miss or bypass of a cache, and what its key differs in from the nearest one of the same function."""

    cache: str
    result: str
    compile_id: str
    process: str
    function: str
    file: str
    line: int
    because: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Something that is not the same on all ranks: each value with the ranks that have it."""

    what: str
    function: str | None
    file: str | None
    line: int | None
    values: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class CollectiveFact:
    """A collective in a captured graph, on the user's line; `ranks` have it."""

    name: str
    graph: str
    function: str
    file: str | None
    line: int | None
    processes: tuple[str, ...]


@dataclass(frozen=True)
class ArtifactFact:
    """A text in the trace that can be written out: `number` names it for `--extract`."""

    number: int
    name: str
    compile_id: str
    process: str
    bytes: int


@dataclass(frozen=True)
class TraceReport:
    """All of it.  `source` says in a few words where the facts come from (`trace of 14:02`).

    `records` counts every kind of record, `unknown` those that no part of this program knows, `problems` are sentences
    about what could not be read, `notes` about what is shown elsewhere than the trace has it.
    """

    inductoscope: str
    source: str
    path: str
    torch: str | None
    triton: str | None
    python: str | None
    processes: tuple[ProcessFacts, ...]
    targets: tuple[TargetReport, ...]
    breaks: tuple[DistinctBreak, ...]
    calls: tuple[Call, ...]
    stories: tuple[Story, ...]
    costs: tuple[FunctionCost, ...]
    phases: tuple[PhaseSum, ...]
    cache_misses: tuple[CacheMiss, ...]
    differences: tuple[Difference, ...]
    collectives: tuple[CollectiveFact, ...]
    artifacts: tuple[ArtifactFact, ...]
    links: tuple[tuple[str, str], ...]
    records: dict[str, int]
    unknown: dict[str, int]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA
