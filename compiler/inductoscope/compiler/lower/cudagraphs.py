"""Whether CUDA graphs would be used, by Inductor's own checks, although nothing is captured.

Inductor decides in three places: while it compiles (operators and devices), when it has compiled (partitions), and at
the first run (inputs that the graph writes).  The last of them is asked here with what is known when the graph has
been compiled, and the sizes that make one more recording are counted as the program runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.findings import finding
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.lower.recording import Partition
from inductoscope.protocol.report import CudaGraphs, Finding, Place


@dataclass
class Verdict:
    """What was found out about one captured graph: forward and backward together."""

    place: Place
    asked: bool
    on_cuda: bool = False
    skips: list[str] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    recordings: int = 0
    sizes: set[tuple[int, ...]] = field(default_factory=set)

    def called_with(self, inputs: Sequence[Any]) -> None:
        """A call of the graph: each new combination of symbolic sizes would be recorded as one more CUDA graph."""
        self.sizes.add(tuple(value for value in inputs if isinstance(value, int) and not isinstance(value, bool)))

    @contextlib.contextmanager
    def deciding(self) -> Iterator[None]:
        """Let Inductor make its checks for the duration of the block, without its CUDA graph runtime."""
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context
            enter(compat.replaced(compat.CUDAGRAPHIFY, lambda _: self._cudagraphify))
            enter(compat.replaced(compat.CUDAGRAPH_BACKWARD, lambda _: lambda *_args, **_kwargs: None))
            for point in compat.CUDAGRAPH_SKIP:
                enter(compat.replaced(point, self._noting_skip))
            yield

    def _cudagraphify(self, model: Callable[..., Any], static_input_idxs: Sequence[int] = (), **known: Any) -> Any:
        written = [index for index in known.get("mutated_input_idxs", ()) if index not in set(static_input_idxs)]
        if written:
            self.skips.append(compat.mutation_sentence(known.get("placeholders", ()), written))
        else:
            self.recordings += 1
        return model

    def _noting_skip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def noting(message: str) -> Any:
            self.skips.append(message)
            return original(message)

        return noting


def summary(verdicts: Sequence[Verdict]) -> CudaGraphs:
    """The worst that happened to any graph that asked for CUDA graphs."""
    asked = [verdict for verdict in verdicts if verdict.asked]
    for status, why in (("skipped", _skipped), ("partitioned", _partitioned)):
        reason = next(filter(None, map(why, asked)), None)
        if reason is not None:
            return CudaGraphs(status, reason)
    return CudaGraphs("on") if asked else CudaGraphs()


def findings(verdicts: Sequence[Verdict], places: Places) -> list[Finding]:
    """What the user must know: each reason once."""
    found: dict[tuple[str, str, int, str], Finding] = {}
    for verdict in (v for v in verdicts if v.asked):
        for one in _of(verdict, places):
            found.setdefault((one.code, one.file, one.line, one.message), one)
    return list(found.values())


def _of(verdict: Verdict, places: Places) -> Iterator[Finding]:
    skipped, partitioned = _skipped(verdict), _partitioned(verdict)
    if skipped:
        place = next((p for text in verdict.skips if (p := places.in_stack(text))), verdict.place)
        yield finding("cudagraphs-skipped", place, f"CUDA graphs were asked for and are not used: {skipped}.")
    elif partitioned:
        apart = next((places.of(p.node) for p in verdict.partitions if p.node and places.of(p.node)), None)
        yield finding("cudagraphs-partitioned", apart or verdict.place, f"{partitioned}.")
    limit = compat.dynamic_shape_limit()
    if not skipped and verdict.on_cuda and limit and len(verdict.sizes) > limit:
        yield finding(
            "cudagraphs-many-sizes",
            verdict.place,
            f"Each new size is recorded as one more CUDA graph: {len(verdict.sizes)} distinct sizes so far, "
            f"and torch warns above {limit}.",
            hint="Pad the inputs to a few fixed sizes, or set "
            "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True.",
        )


def _skipped(verdict: Verdict) -> str | None:
    if not verdict.on_cuda:
        return "all tensors of this graph are on the CPU"
    return _reason(verdict.skips[0]) if verdict.skips else None


def _partitioned(verdict: Verdict) -> str | None:
    if len(verdict.partitions) < 2:
        return None
    recordable = sum(partition.recordable for partition in verdict.partitions)
    why = "; ".join(dict.fromkeys(p.reason for p in verdict.partitions if p.reason))
    return (
        f"The graph is cut into {len(verdict.partitions)} partitions and {recordable} of them can be recorded as CUDA "
        f"graphs" + (f": {why} cannot" if why else "")
    )


def _reason(message: str) -> str:
    """Inductor's message without its stack and its own preface."""
    text = message.split("Found from", maxsplit=1)[0].strip().rstrip(".")
    while text.startswith("skipping cudagraphs due to "):
        text = text.removeprefix("skipping cudagraphs due to ")
    return text
