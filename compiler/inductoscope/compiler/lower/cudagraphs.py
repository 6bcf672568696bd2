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


@dataclass(frozen=True)
class Skip:
    """Why Inductor would not use CUDA graphs, and the line that is to blame where Inductor names one."""

    reason: str
    place: Place | None = None


@dataclass(frozen=True)
class Piece:
    """A piece of the graph as cut for CUDA graphs; why it cannot be recorded, and the line that is to blame."""

    recordable: bool
    reason: str | None = None
    place: Place | None = None


@dataclass
class Verdict:
    """What was found out about one captured graph: forward and backward together.  `begins` is its first line."""

    begins: Place
    asked: bool
    places: Places
    on_cuda: bool = False
    skips: list[Skip] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    recordings: int = 0
    sizes: set[tuple[int, ...]] = field(default_factory=set)

    def called_with(self, inputs: Sequence[Any]) -> None:
        """A call of the graph: each new combination of symbolic sizes would be recorded as one more CUDA graph."""
        self.sizes.add(tuple(value for value in inputs if isinstance(value, int) and not isinstance(value, bool)))

    def cut(self, partitions: Sequence[Partition]) -> None:
        """Take in how Inductor has cut a graph."""
        self.pieces += [Piece(one.recordable, one.reason, self.places.of(one.node)) for one in partitions]

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
            self._skip(compat.mutation_sentence(known.get("placeholders", ()), written))
        else:
            self.recordings += 1
        return model

    def _noting_skip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def noting(message: str) -> Any:
            self._skip(message)
            return original(message)

        return noting

    def _skip(self, message: str) -> None:
        self.skips.append(Skip(_reason(message), self.places.in_stack(message)))


def summary(verdicts: Sequence[Verdict]) -> CudaGraphs:
    """The worst that happened to any graph that asked for CUDA graphs."""
    asked = [verdict for verdict in verdicts if verdict.asked]
    for status, why in (("skipped", _skipped), ("partitioned", _partitioned)):
        reason = next(filter(None, map(why, asked)), None)
        if reason is not None:
            return CudaGraphs(status, reason)
    return CudaGraphs("on") if asked else CudaGraphs()


def findings(verdicts: Sequence[Verdict]) -> list[Finding]:
    """What the user must know: each reason once."""
    found: dict[tuple[str, str, int, str], Finding] = {}
    for verdict in (v for v in verdicts if v.asked):
        for one in _of(verdict):
            found.setdefault((one.code, one.file, one.line, one.message), one)
    return list(found.values())


def _of(verdict: Verdict) -> Iterator[Finding]:
    skipped, partitioned = _skipped(verdict), _partitioned(verdict)
    if skipped:
        place = next((skip.place for skip in verdict.skips if skip.place), verdict.begins)
        yield finding("cudagraphs-skipped", place, f"CUDA graphs were asked for and are not used: {skipped}.")
    elif partitioned:
        place = next((piece.place for piece in verdict.pieces if piece.place), verdict.begins)
        yield finding("cudagraphs-partitioned", place, f"{partitioned}.")
    limit = compat.dynamic_shape_limit()
    if not skipped and verdict.on_cuda and limit and len(verdict.sizes) > limit:
        yield finding(
            "cudagraphs-many-sizes",
            verdict.begins,
            f"Each new size is recorded as one more CUDA graph: {len(verdict.sizes)} distinct sizes so far, "
            f"and torch warns above {limit}.",
            hint="Pad the inputs to a few fixed sizes, or set "
            "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True.",
        )


def _skipped(verdict: Verdict) -> str | None:
    if not verdict.on_cuda:
        return "all tensors of this graph are on the CPU"
    return verdict.skips[0].reason if verdict.skips else None


def _partitioned(verdict: Verdict) -> str | None:
    if len(verdict.pieces) < 2:
        return None
    recordable = sum(piece.recordable for piece in verdict.pieces)
    why = "; ".join(dict.fromkeys(piece.reason for piece in verdict.pieces if piece.reason))
    return (
        f"The graph is cut into {len(verdict.pieces)} partitions and {recordable} of them can be recorded as CUDA "
        f"graphs" + (f": {why} cannot" if why else "")
    )


def _reason(message: str) -> str:
    """Inductor's message without its stack and its own preface."""
    text = message.split("Found from", maxsplit=1)[0].strip().rstrip(".")
    while text.startswith("skipping cudagraphs due to "):
        text = text.removeprefix("skipping cudagraphs due to ")
    return text
