"""The conversation between server and worker.

One worker process serves one run:

    server                              worker
      starts the process ->
                                     <- Hello (torch imported, or `problem` says why not)
      Run ->
                                     <- Progress, FindingFound, LogLine ...   any number, in any order
                                     <- RungDone (the whole report so far)    one a rung
                                     <- RunDone | RunFailed                   last; the worker then exits

There is no cancel message: the server ends the process group.  End of input on the worker's side means that the
server is gone, and the worker exits.

A *warm* process has imported what runs need and is forked for each of them (Linux).  It has one socket for both
directions, on which descriptors travel beside a message:

    server                              warm process
      starts the process, or has another one forked ->
                                     <- Hello     once it is ready, or `problem` says why it cannot be
                                     <- Warmed    what it has ready
      Fork + three descriptors ->                 the child is a worker: it reads, writes and prints there
      Fork(layer) + one descriptor ->             the child is a warm process that has more ready; its socket
                                     <- Forked    in the order of the requests
                                     <- Ended     a child has ended
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from inductoscope.protocol import codec
from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Finding, Rung, Span, TargetReport

PROTOCOL = 1


class TargetKind(enum.Enum):
    """How the worker gets from a module to something to call."""

    FUNCTION = "function"  # a module-level function, plain or already compiled
    MODULE_CLASS = "module-class"  # an nn.Module subclass: constructed first, then called
    OBJECT = "object"  # a module-level name bound to a callable (a module instance, a torch.compile result)


@dataclass(frozen=True)
class Target:
    """What to compile.  `entry` is the dotted name in the module (`Model`, `attend`); `name` is for people.

    `line` is the line of the definition that findings without a better place are put on.  `comment` is the text of
    the `# inductoscope:` comment, without that prefix, where there is one; `comment_from` says where it comes from
    where nobody wrote it (`recorded 14:02 from python train.py`).
    """

    file: str
    name: str
    line: int
    kind: TargetKind
    entry: str
    end_line: int = 0
    comment: str | None = None
    comment_from: str | None = None

    @property
    def key(self) -> str:
        """Stable identity within a workspace."""
        return f"{self.file}::{self.name}"


@dataclass(frozen=True)
class Hello:
    """The worker is ready; `problem` is a sentence when it cannot work (no torch, unsupported Python).

    `gpu` says whether its machine has a GPU; null where that machine is the server's own.  `warm` names what the
    process had ready before it was forked for this run; null for a process that was started for it.
    """

    protocol: int
    python: str
    executable: str
    pid: int
    torch: str | None = None
    triton: str | None = None
    problem: str | None = None
    warning: str | None = None
    gpu: bool | None = None
    warm: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Layer:
    """What a warm process is to have ready beyond the one that it is forked from: a device, or imported modules.

    `device` is one that a run can be for and that nobody described himself.  `modules` are dotted names, to be imported
    in this order as the program `file` would import them; `search_paths` as in `Run`.
    """

    device: str | None = None
    modules: tuple[str, ...] = ()
    file: str | None = None
    search_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fork:
    """Fork: a worker for one run, in the working folder `cwd`, or a warm process when there is a `layer`.

    `mark` is of the form `NAME=value`: the child has it in its environment, of which NAME was a part from the start
    with a value of the same length.
    """

    mark: str
    cwd: str | None = None
    layer: Layer | None = None


@dataclass(frozen=True)
class Forked:
    """A child was forked; `pid` is None when the system refused it."""

    pid: int | None


@dataclass(frozen=True)
class Ended:
    """A child has ended; the code is negative for a signal."""

    pid: int
    returncode: int


@dataclass(frozen=True)
class Warmed:
    """A warm process is ready; `files` are those that it would have to be made anew for if they changed, `unfit` is a
    sentence when it must not be forked (it has threads, say)."""

    files: tuple[str, ...]
    unfit: str | None = None


@dataclass(frozen=True)
class Assembling:
    """How kernels are assembled: `processes` at a time, those that somebody looks at before all others.

    Looked at are kernels with `kernel` in their names and those that a line of the program went into.  What the
    compiler makes is kept in the folder `store` (see `kernel_store`) up to `store_bytes`, and found there again;
    without a folder nothing is kept.
    """

    processes: int = 1
    store: str | None = None
    store_bytes: int = 512 << 20
    kernel: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Reuse:
    """Facts about lowered graphs are kept in the folder `store` up to `store_bytes`, and a graph that is found there is
    not lowered again; without a folder nothing is kept."""

    store: str | None = None
    store_bytes: int = 256 << 20


@dataclass(frozen=True)
class Memory:
    """What workers want to be told again, as texts that only they read: by runs of the same target on the same device,
    and by all runs in the same interpreter."""

    target: str = ""
    interpreter: str = ""


class Errand(enum.Enum):
    """What a run is for."""

    REPORT = "report"
    FIGURES = "figures"  # of the card in this machine: no program is run
    DECISIONS = "decisions"  # what torch decides by timing on that card while the target is compiled and run on it


@dataclass(frozen=True)
class Run:
    """Do one target up to `rung` on `device`.  `overlays` maps absolute paths to unsaved text.

    `what_if` are sets of inputs in the language of the inputs comment: after the run, would each be compiled again?
    `probe_seconds` is the wall time that trying other sizes may take after all else is told; 0 leaves it out.
    `memory_bytes` is what the server lets this process and its children hold, if there is a limit.
    `assembling` says how kernels are assembled, `bench` and `bench_seconds` how things are measured, `reuse` where
    lowered graphs are kept.  `own` is the GPU that `device` names where somebody described it.
    """

    run_id: int
    target: Target
    device: str
    rung: Rung
    overlays: dict[str, str] = field(default_factory=dict)
    search_paths: tuple[str, ...] = ()
    bench_seconds: float = 2.0
    what_if: tuple[str, ...] = ()
    memory: Memory = Memory()
    probe_seconds: float = 0.0
    memory_bytes: int | None = None
    assembling: Assembling = field(default_factory=Assembling)
    own: OwnDevice | None = None
    errand: Errand = Errand.REPORT
    bench: BenchOptions = field(default_factory=BenchOptions)
    reuse: Reuse = field(default_factory=Reuse)


@dataclass(frozen=True)
class Progress:
    """What the worker is doing now, in a few words."""

    run_id: int
    rung: Rung
    text: str


@dataclass(frozen=True)
class FindingFound:
    """A finding, as soon as it is known.  The next report repeats it."""

    run_id: int
    finding: Finding


@dataclass(frozen=True)
class RungDone:
    """A rung is finished; `report` is the whole report so far."""

    run_id: int
    rung: Rung
    report: TargetReport


@dataclass(frozen=True)
class RunDone:
    """The run is finished; this is the last message.

    `files` are the user's own files that were imported or read; `memory` is for the next run.  `card` and `decisions`
    are what the errands of these names bring.
    """

    run_id: int
    report: TargetReport
    files: tuple[str, ...] = ()
    memory: Memory = Memory()
    card: OwnDevice | None = None
    decisions: Recording | None = None


class FailureKind(enum.Enum):
    """Why a run gave no report."""

    SYNTAX = "syntax"
    IMPORT = "import"
    NO_TARGET = "no-target"
    NO_INPUTS = "no-inputs"
    BAD_INPUTS = "bad-inputs"
    RUN = "run"
    DEVICE = "device"
    INTERNAL = "internal"
    # The rest are the server's own, about a worker that can no longer speak.
    NO_TORCH = "no-torch"
    NO_INTERPRETER = "no-interpreter"
    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "memory"


@dataclass(frozen=True)
class Failure:
    """What happened, why and what to do, in sentences; `details` is for the log (a traceback).

    `simulation` says that it may be the simulated device's fault, so that the same program may run on the CPU.
    """

    kind: FailureKind
    message: str
    place: Span | None = None
    details: str = ""
    simulation: bool = False


@dataclass(frozen=True)
class RunFailed:
    """The run gave up; `report` holds what was known by then, if anything, `files` what was imported."""

    run_id: int
    failure: Failure
    report: TargetReport | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogLine:
    """For the log only."""

    level: str
    text: str


Message: TypeAlias = (
    "Hello | Run | Progress | FindingFound | RungDone | RunDone | RunFailed | LogLine | Fork | Forked | Ended | Warmed"
)
_BY_TAG: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *(Hello, Run, Progress, FindingFound, RungDone, RunDone, RunFailed, LogLine),
        *(Fork, Forked, Ended, Warmed),
    )
}


def to_wire(message: Message) -> dict[str, Any]:
    """The JSON form of a message: its tag and its fields."""
    return {"type": type(message).__name__, "body": codec.to_json(message)}


def from_wire(value: Any) -> Message:
    """The message in a JSON value.  Raises `codec.CodecError`, also on an unknown tag."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise codec.CodecError("not a message")
    cls = _BY_TAG.get(value["type"])
    if cls is None:
        raise codec.CodecError(f"unknown message {value['type']!r}")
    message: Message = codec.from_json(cls, value.get("body"))
    return message
