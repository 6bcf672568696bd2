"""What the server says and hears beyond LSP, as dataclasses; `docs/lsp-extensions.md` describes each.

The VS Code extension's `src/protocol.ts` is generated from here.  Lines are 1-based.  Values only: knows neither the
session nor LSP.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from inductoscope.protocol.report import Phase, Stage, TargetReport

STATUS = "inductoscope/status"
TRUST = "inductoscope/trust"
SYNC = "inductoscope/sync"
EXPLORE = "inductoscope/explore"
LINES = "inductoscope/lines"
ARTIFACT_SCHEME = "inductoscope-artifact"


@dataclass(frozen=True)
class InitializationOptions:
    """What a client may say when it starts; `settings` are those of the section `inductoscope`."""

    trusted: bool | None = None
    status: bool | None = None
    settings: dict[str, Any] | None = None


@dataclass(frozen=True)
class TargetArgument:
    """The argument of a command that is about a target; `document` is the name of a document of it."""

    uri: str
    target: str | None = None
    document: str | None = None


@dataclass(frozen=True)
class DocumentParams:
    """The parameters of requests about a document."""

    uri: str


@dataclass(frozen=True)
class TrustParams:
    """Whether the person trusts the workspace."""

    trusted: bool


@dataclass(frozen=True)
class SyncParams:
    """A document and the version that it has to reach."""

    uri: str
    version: int | None = None


@dataclass(frozen=True)
class SyncedTarget:
    """A target and how its last run ended; null when it never ran."""

    name: str
    status: str | None


@dataclass(frozen=True)
class SyncResult:
    """What the server knows when nothing of the document is left to do."""

    version: int | None
    targets: tuple[SyncedTarget, ...]


class Health(enum.Enum):
    """Whether the server can do its work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class TargetState(enum.Enum):
    """What is going on with a target."""

    WAITING = "waiting"
    CHECKING = "checking"
    MEASURING = "measuring"
    CHECKED = "checked"
    FAILED = "failed"
    NO_INPUTS = "no-inputs"
    NOT_RUN = "not-run"


@dataclass(frozen=True)
class TargetStatus:
    """A target by the line of its definition; `stale` says that the text was edited since."""

    uri: str
    name: str
    line: int
    state: TargetState
    summary: str
    stale: bool


@dataclass(frozen=True)
class Status:
    """The state of everything; `quiescent` is false while anything runs or is about to."""

    health: Health
    quiescent: bool
    message: str
    torch: str | None
    triton: str | None
    python: str | None
    interpreter: str | None
    device: str | None
    trusted: bool
    targets: tuple[TargetStatus, ...]


class NodeKind(enum.Enum):
    """What a node of the tree is."""

    GRAPH = "graph"
    BREAK = "break"
    GROUP = "group"
    KERNEL = "kernel"
    ARTIFACT = "artifact"
    PAGE = "page"
    MESSAGE = "message"


@dataclass(frozen=True)
class Node:
    """A node of the tree of a target: graphs with the breaks between them, fusion groups, kernels and their documents.

    `uri` is a document to open, `file` and `line` the place in the program as it is now.
    """

    kind: NodeKind
    label: str
    detail: str | None = None
    uri: str | None = None
    file: str | None = None
    line: int | None = None
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class KernelDocumentFact:
    """A document of a kernel: its source (`stage` is null), or what became of it in one configuration.

    `likely` says that the configuration is the one Inductor would launch; `revision` differs when the text does.
    """

    uri: str
    kernel: str
    graph: str
    stage: str | None
    likely: bool
    revision: str
    language: str


@dataclass(frozen=True)
class GraphDocumentFact:
    """A document of an FX graph at one stage."""

    uri: str
    graph: str
    stage: Stage
    phase: Phase
    title: str
    ops: int
    language: str


@dataclass(frozen=True)
class WrapperDocumentFact:
    """A document with the code that calls the kernels of a graph."""

    uri: str
    graph: str
    phase: Phase
    title: str
    revision: str
    language: str


@dataclass(frozen=True)
class PageFact:
    """A document for people: report, guards, timeline."""

    uri: str
    name: str
    language: str


@dataclass(frozen=True)
class ExploredTarget:
    """All that is known of a target.

    Lines in `report` are those of the text that was compiled; `lines` maps those that have moved since to where they
    are now, null for edited ones.  The nodes of FX graphs are left out of `report`.
    """

    name: str
    line: int | None
    state: TargetState
    summary: str
    stale: bool
    age_s: float | None
    report: TargetReport | None
    lines: dict[str, int | None] = field(default_factory=dict)
    documents: tuple[KernelDocumentFact, ...] = ()
    graphs: tuple[GraphDocumentFact, ...] = ()
    wrappers: tuple[WrapperDocumentFact, ...] = ()
    pages: tuple[PageFact, ...] = ()
    nodes: tuple[Node, ...] = ()


class ExploreState(enum.Enum):
    """Whether there is anything to show of a document."""

    READY = "ready"
    EMPTY = "empty"
    UNTRUSTED = "untrusted"
    ERROR = "error"
    CLOSED = "closed"


@dataclass(frozen=True)
class Explored:
    """All that is known of a document; `message` is a sentence that says what to do where that is nothing."""

    state: ExploreState
    message: str | None
    targets: tuple[ExploredTarget, ...]


@dataclass(frozen=True)
class ProgramLine:
    """A line of a file of the program, as it is now."""

    file: str
    line: int


@dataclass(frozen=True)
class LinesResult:
    """From lines of a document to lines of the kernel's source and of its PTX; `model`: from lines of the kernel's
    source to lines of the program."""

    kernel: dict[str, int] = field(default_factory=dict)
    ptx: dict[str, int] = field(default_factory=dict)
    model: dict[str, tuple[ProgramLine, ...]] = field(default_factory=dict)
