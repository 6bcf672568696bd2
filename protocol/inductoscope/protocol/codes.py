"""The registry of finding codes: what each means and how loud it is by default.

Each code has a page `docs/diagnostics/<code>.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import Severity


@dataclass(frozen=True)
class Code:
    """A kind of finding.  `shown` is false for codes that the user has to ask for."""

    name: str
    severity: Severity
    title: str
    shown: bool = True


def _table(*codes: Code) -> dict[str, Code]:
    return {code.name: code for code in codes}


CODES: dict[str, Code] = _table(
    Code("graph-break", Severity.WARNING, "Dynamo split or gave up the graph at this line"),
    Code("recompile", Severity.INFORMATION, "a guard failed, so the function was compiled again"),
    Code("recompile-limit", Severity.ERROR, "the recompile limit was reached; the function runs eagerly"),
    Code("specialized", Severity.INFORMATION, "a dimension was pinned to one value"),
    Code("not-compiled", Severity.WARNING, "Dynamo skipped this function"),
    Code("compile-error", Severity.ERROR, "compiling raised an error"),
    Code("run-error", Severity.ERROR, "the program could not be run"),
    Code("worker-crash", Severity.ERROR, "the process that ran the program died"),
    Code("cudagraphs-skipped", Severity.INFORMATION, "CUDA graphs were asked for and not used"),
    Code("cudagraphs-partitioned", Severity.INFORMATION, "only parts of the graph run as CUDA graphs"),
    Code("cudagraphs-many-sizes", Severity.INFORMATION, "a CUDA graph was recorded for each of many sizes"),
    Code("library-kernel", Severity.HINT, "an operator without generated code"),
    Code("cache-bypass", Severity.HINT, "a compile cache was bypassed"),
    Code("cache-not-saved", Severity.HINT, "a compile cache entry could not be saved"),
    Code("backend-split", Severity.INFORMATION, "the backend cut one captured graph into several"),
    Code("dtype-note", Severity.HINT, "float64 or complex numbers leak in here"),
    Code("large-graph", Severity.HINT, "a loop was unrolled into a very large graph"),
    Code("backward-left-out", Severity.HINT, "a very large backward pass was not lowered"),
    Code("warning", Severity.INFORMATION, "torch warned while tracing"),
    Code("device-sync", Severity.INFORMATION, "the host waits for the device here"),
    Code("guessed-value", Severity.INFORMATION, "a value was too costly to compute without a GPU and was guessed"),
    Code("missed-fusion", Severity.HINT, "a kernel stays apart from its neighbour", shown=False),
    Code("register-spill", Severity.HINT, "the kernel spills registers"),
    Code("low-occupancy", Severity.HINT, "few warps fit on a multiprocessor"),
    Code("numerics-mismatch", Severity.WARNING, "compiled and eager results differ"),
    Code("slower-than-eager", Severity.WARNING, "the compiled program is slower than eager"),
    Code("user-kernel", Severity.HINT, "a hand-written Triton kernel was captured", shown=False),
    Code("no-inputs", Severity.HINT, "no example inputs are known for this target"),
    Code("scan-error", Severity.ERROR, "the file could not be read as Python"),
)
