"""The report of a target as a document."""

from __future__ import annotations

import dataclasses
from typing import Any

from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import (
    Basis,
    Choice,
    Decision,
    DecisionKind,
    Graph,
    GraphBreak,
    Kernel,
    KernelLanguage,
    Outcome,
    Phase,
    Place,
    PredictedCall,
    PredictedRun,
    Rung,
    Status,
    TargetReport,
)
from inductoscope.server.features.document import document
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.snapshot import TargetView
from inductoscope.server.targets import ScannedTarget

FILE = "/w/model.py"
VIEW = TargetView(ScannedTarget(Target(FILE, "f", 1, TargetKind.FUNCTION, "f"), "comment"))


def kernel(name: str, *lines: int, phase: Phase = Phase.FORWARD, graph: str = "0/0", **changes: Any) -> Kernel:
    library = name.startswith("extern")
    language, source = (KernelLanguage.EXTERN, None) if library else (KernelLanguage.TRITON, f"# {name}\n")
    made = Kernel(name, language, phase, graph, source, tuple(Place(FILE, line) for line in lines))
    return dataclasses.replace(made, **changes)


def test_predictions_and_decisions_of_the_card_have_sections_of_their_own() -> None:
    run = PredictedRun(33.1, 25.0, 49.0, 33.1, 30.0, 4)
    ways = (Choice("plain", estimated_us=45.0), Choice("padded", estimated_us=160.0))
    decision = Decision(DecisionKind.PADDING, "matmul 5x5x5", "plain", Basis.ESTIMATED, ways, "It is not aligned.")
    told = text(
        predicted_calls=(PredictedCall(None, Phase.FORWARD, 1, run, run, "a model", 1.0, 0.8, 1.3),),
        decisions=(decision,),
    )
    assert "What a call is predicted to take" in told
    assert "so compiling gives 1x (0.8x to 1.3x)" in told
    assert "What only the card can decide" in told
    assert "plain 45.0 µs (estimated), padded 160 µs (estimated); shown is plain (estimated)" in told


def text(**facts: Any) -> str:
    report = TargetReport(FILE, "f", 1, "sim:H200", Rung.ASSEMBLE, Status.PARTIAL, **facts)
    return write(document(VIEW, report, 0.0), Markup.PLAIN)


def test_forward_and_backward_and_library_calls_are_lists_of_their_own() -> None:
    shown = text(
        graphs=(Graph("0/0", "f", FILE, 1, 5), Graph("0/0", "f", FILE, 1, 9, Phase.BACKWARD)),
        kernels=(
            kernel("a", 19),
            kernel("extern_kernels.mm", 20, 19),
            kernel("b", 19, phase=Phase.BACKWARD),
            kernel("extern_kernels.mm", phase=Phase.BACKWARD),
            kernel("a", 19, graph="0/1"),
        ),
    )
    assert shown.startswith(
        "f\n\nH200 (simulated): 1 graph, 5 ops -> 1 kernel, 1 library call, 0 breaks (just now)\n\n"
        "Kernels of the forward pass (1)\n\n- a (line 19)\n\n"
        "Library calls of the forward pass (1)\n\n- extern_kernels.mm (lines 19, 20)\n\n"
        "Kernels of the backward pass (1)\n\n- b (line 19)\n\n"
        "Library calls of the backward pass (1)\n\n- extern_kernels.mm\n\n"
        "1 more launch in versions that were compiled later.\n\n"
    )
    assert shown.endswith("a (graph 0/0)\n\n# a\n\nb (graph 0/0, backward)\n\n# b")


def test_a_break_has_its_number_and_place() -> None:
    broken = GraphBreak(FILE, 9, 9, 0, 1, "GB0059", "It prints.", "", (), None, (), Outcome.SPLIT, count=2)
    elsewhere = dataclasses.replace(broken, file="/w/lib.py", count=1)
    shown = text(breaks=(broken, elsewhere), notes=("Nothing was timed.",))
    assert "- GB0059, line 9: It prints. (2 times)\n- GB0059, lib.py:9: It prints." in shown
    assert "Nothing was timed." in shown
