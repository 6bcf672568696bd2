"""What capture found out, in the report's terms."""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import (
    CacheFact,
    Dimension,
    Finding,
    FxGraph,
    Graph,
    GraphBreak,
    GuardFact,
    Recompile,
    RecompileLimit,
    SkippedFrame,
    Specialization,
    ValueFact,
)


@dataclass(frozen=True)
class CaptureFacts:
    """Everything that Dynamo told; `findings` says what of it the user must know, each thing once."""

    graphs: tuple[Graph, ...] = ()
    fx_graphs: tuple[FxGraph, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    recompile_limit: RecompileLimit | None = None
    specializations: tuple[Specialization, ...] = ()
    values: tuple[ValueFact, ...] = ()
    guards: tuple[GuardFact, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    skipped: tuple[SkippedFrame, ...] = ()
    caches: tuple[CacheFact, ...] = ()
    findings: tuple[Finding, ...] = ()
