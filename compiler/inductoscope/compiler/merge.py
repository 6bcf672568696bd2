"""All facts of a run become one report.

Knows the report's rules (what makes a target compiled, partial, eager or failed), nothing of how facts are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from inductoscope.compiler import cache_facts, fx_nodes, kernel_owners
from inductoscope.compiler.capture import CaptureFacts
from inductoscope.compiler.failures import IsUser
from inductoscope.compiler.lower import LowerFacts
from inductoscope.compiler.marks import line_span
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import (
    Decision,
    DeviceSync,
    Finding,
    Graph,
    InputSet,
    Phase,
    Related,
    Rung,
    Severity,
    Stage,
    Status,
    TargetReport,
)

COMPILE_ERROR = "compile-error"


@dataclass(frozen=True)
class Facts:
    """What is known of one target by now."""

    capture: CaptureFacts = field(default_factory=CaptureFacts)
    lower: LowerFacts = field(default_factory=LowerFacts)
    inputs: tuple[InputSet, ...] = ()
    syncs: tuple[DeviceSync, ...] = ()
    launches: tuple[kernel_owners.Launch, ...] = ()
    device_findings: tuple[Finding, ...] = ()
    decisions: tuple[Decision, ...] = ()
    compiling_is_off: bool = False
    notes: tuple[str, ...] = ()


def report(target: Target, device: str, rung: Rung, facts: Facts, is_user: IsUser) -> TargetReport:
    """The report of `target` on `device` after `rung`."""
    found = (*facts.capture.findings, *facts.lower.findings, *facts.device_findings)
    findings = distinct(one if is_user(one.file) else _at_target(one, target) for one in found)
    status, message = _status(facts, findings)
    fx_graphs = (*facts.capture.fx_graphs, *facts.lower.fx_graphs)
    kernels = [kernel_owners.owned(kernel, target) for kernel in facts.lower.kernels]
    outside = kernel_owners.outside_of_graphs(kernels, facts.launches)
    return TargetReport(
        file=target.file,
        name=target.name,
        line=target.line,
        device=device,
        rung=rung,
        status=status,
        message=message,
        inputs=facts.inputs,
        graphs=(*facts.capture.graphs, *_backward_graphs(facts)),
        breaks=facts.capture.breaks,
        recompiles=facts.capture.recompiles,
        recompile_limit=facts.capture.recompile_limit,
        specializations=facts.capture.specializations,
        values=facts.capture.values,
        guards=facts.capture.guards,
        dimensions=facts.capture.dimensions,
        fx_graphs=fx_graphs,
        passes=facts.lower.passes,
        saved=facts.lower.saved,
        recomputed=facts.lower.recomputed,
        skipped=facts.capture.skipped,
        syncs=facts.syncs,
        fusion_groups=facts.lower.fusion_groups,
        kernels=tuple(kernel_owners.named(kernel, facts.launches) for kernel in kernels),
        decisions=(*facts.decisions, *facts.lower.decisions),
        wrappers=facts.lower.wrappers,
        memory=facts.lower.memory,
        cudagraphs=facts.lower.cudagraphs,
        lowerings=facts.lower.lowerings,
        caches=cache_facts.joined(facts.capture.caches, facts.lower.caches),
        findings=findings,
        notes=(*facts.notes, *outside, *fx_nodes.left_out(fx_graphs), *facts.lower.problems),
    )


def _backward_graphs(facts: Facts) -> Iterator[Graph]:
    """The backward graph of each captured one that AOTAutograd made one for."""
    captured = {graph.id: graph for graph in facts.capture.graphs}
    for cut in facts.lower.fx_graphs:
        whole = (cut.stage, cut.phase, cut.body) == (Stage.PARTITIONED, Phase.BACKWARD, None)
        if whole and cut.graph in captured:
            yield replace(captured[cut.graph], ops=cut.ops, phase=Phase.BACKWARD)


def _at_target(finding: Finding, target: Target) -> Finding:
    """What no line of the user's stands behind, on the target: nobody looks into the library that it is about."""
    span = line_span(target.file, target.line)
    return replace(
        finding,
        file=span.file,
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        related=(*finding.related, Related(finding.file, finding.line, "in this line of a library")),
    )


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in order of line, each once: what two observers saw of one error is one finding."""
    seen: dict[tuple[str, str, int, str], Finding] = {}
    for finding in findings:
        what = "" if finding.code == COMPILE_ERROR else f"{finding.id} {finding.guard_family} {finding.message}"
        seen.setdefault((finding.code, finding.file, finding.line, what), finding)
    return tuple(sorted(seen.values(), key=lambda one: (one.file, one.line, one.column, one.code)))


def _status(facts: Facts, findings: Sequence[Finding]) -> tuple[Status, str | None]:
    error = next((finding for finding in findings if _ends_the_program(finding)), None)
    if error is not None:
        return Status.FAILED, error.message
    if not facts.capture.graphs:
        return Status.EAGER, _why_eager(facts)
    if facts.capture.breaks or facts.capture.recompile_limit is not None:
        return Status.PARTIAL, None
    return Status.COMPILED, None


def _ends_the_program(finding: Finding) -> bool:
    """An error of compiling; a graph break is one where `fullgraph=True` allows none."""
    return finding.code == COMPILE_ERROR or (finding.code == "graph-break" and finding.severity is Severity.ERROR)


def _why_eager(facts: Facts) -> str:
    if facts.compiling_is_off:
        return "Nothing was compiled: TORCH_COMPILE_DISABLE or torch._dynamo.config.disable turns torch.compile off."
    if not facts.inputs:
        return "Nothing was compiled, because nothing was called: exercise() does not call what it is given."
    if facts.capture.breaks:
        first = facts.capture.breaks[0]
        return f"Nothing was compiled: {first.reason} (line {first.line}) gives up the whole function."
    if facts.capture.skipped:
        first_skip = facts.capture.skipped[0]
        return f"Nothing was compiled: Dynamo skipped {first_skip.function}: {first_skip.reason}."
    return "Nothing was compiled: Dynamo captured no tensor operation in these calls."
