"""What torch would decide on the card while it generates or launches kernels, beyond what a kernel's own choices tell.

Knows settings and kernels' launch facts; nothing of how times are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inductoscope.compiler.card.replay import Replay
from inductoscope.protocol.report import Basis, Choice, Decision, DecisionKind, Kernel, Place

_FUSED, _APART = "as the scheduler's rules fuse them", "apart"
# Settings that make Inductor time kernels before it fuses them, with what they are about.
_TIMED_FUSIONS = {
    "benchmark_fusion": "neighbouring kernels",
    "benchmark_combo_kernel": "kernels that share a launch",
}


def of_graph(graph: str, settings: Mapping[str, Any], place: Place) -> Iterator[Decision]:
    """Fusions that Inductor would time, by the user's own `settings`."""
    for name, what in _TIMED_FUSIONS.items():
        if settings.get(name):
            text = (
                f"{name} is on, so that Inductor times {what} fused and apart on the GPU and takes the faster; here "
                "they are fused wherever the scheduler's rules allow it."
            )
            ways = (Choice(_FUSED), Choice(_APART))
            subject = f"graph {graph}: {what}"
            yield Decision(DecisionKind.FUSION, subject, _FUSED, Basis.RULE, ways, text, place.file, place.line, graph)


def of_kernels(kernels: Sequence[Kernel], replay: Replay) -> Iterator[Decision]:
    """Configurations that the card would search for, kernel by kernel."""
    for kernel in kernels:
        if kernel.launch is not None and kernel.launch.searched:
            yield _search(kernel, replay)


def _search(kernel: Kernel, replay: Replay) -> Decision:
    recorded = replay.kernel(kernel.source or "")
    starts = kernel.launch.configs if kernel.launch is not None else 0
    begin = f"the fastest of {starts} configurations" if starts > 1 else "the one configuration"
    text = (
        f"coordinate_descent_tuning is on: from {begin} that it starts with, Inductor tries others on the GPU, one "
        "block size, number of warps or of stages at a time, for as long as they are faster."
    )
    if recorded is not None:
        won = recorded.winner
        shown = _named(won.blocks, won.num_warps, won.num_stages)
        text += f" It ended with {shown}, {replay.as_recorded}."
        ways: tuple[Choice, ...] = (Choice(shown, won.us, True),)
    else:
        shown = "where the search begins"
        text += " Where that ends only the card can tell; shown is where it begins."
        ways = (Choice(shown), Choice("a configuration that is found from there"))
    basis = Basis.RECORDED if recorded is not None else Basis.RULE
    first = kernel.lines[0] if kernel.lines else Place("", 0)
    return Decision(
        kind=DecisionKind.SEARCH,
        subject=kernel.name,
        shown=shown,
        basis=basis,
        candidates=ways,
        text=text,
        file=first.file or None,
        line=first.line or None,
        graph=kernel.graph,
    )


def _named(blocks: Mapping[str, int], warps: int, stages: int) -> str:
    sizes = [f"{name}={size}" for name, size in blocks.items()]
    return ", ".join([*sizes, f"num_warps={warps}", f"num_stages={stages}"])
