"""Passes, libraries, choices and neighbours, as people read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from inductoscope.protocol.report import (
    ApartFrom,
    Choice,
    FusionGroup,
    FxGraph,
    Graph,
    GroupOp,
    Kernel,
    KernelLanguage,
    PassFact,
    PassStage,
    PatternFact,
    Phase,
    Place,
    Rung,
    Stage,
    Status,
    TargetReport,
)
from inductoscope.server import apart, words
from inductoscope.server.features import passes
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.text import report as text_report
from inductoscope.server.text.view import Part, View

FILE = "/model.py"
ADDMM = PassFact(
    "0/0",
    Phase.FORWARD,
    "pass_pattern_2",
    14,
    13,
    fired=2,
    patterns=(PatternFact("addmm", 2, 4, (Place(FILE, 19), Place(FILE, 34))),),
)
DECLINED = PassFact(
    "0/0",
    Phase.FORWARD,
    "pass_pattern_0",
    14,
    14,
    fired=1,
    stage=PassStage.JOINT,
    patterns=(PatternFact("bmm_to_mm", 1, 1, (Place(FILE, 19),)),),
    changed=False,
)
BACKWARD = PassFact("0/0", Phase.BACKWARD, "view_to_reshape", 22, 22)
PRODUCT = Kernel(
    "extern_kernels.mm",
    KernelLanguage.EXTERN,
    Phase.FORWARD,
    "0/0",
    None,
    (Place(FILE, 19),),
    library="cuBLAS",
    note="shown is the library call",
    choices=(Choice("mm (library call)"), *(Choice(f"triton_mm (BLOCK_M={size})") for size in (16, 32, 64, 128))),
)


def report(**facts: Any) -> TargetReport:
    return TargetReport(FILE, "f", 1, "sim:H200", Rung.LOWER, Status.COMPILED, **facts)


def printed(shown: TargetReport, *parts: Part) -> str:
    console = Console(width=160)
    view = View(frozenset(parts), Path("/"), lambda _file, _line: "")
    with console.capture() as capture:
        console.print(text_report.target(shown, view))
    return capture.get()


def test_the_terminal_shows_passes_when_asked_for():
    shown = report(graphs=(Graph("0/0", "f", FILE, 1, 9),), passes=(DECLINED, ADDMM, BACKWARD))
    assert "pass_pattern" not in printed(shown)
    lines = printed(shown, Part.PASSES).splitlines()
    (changed,) = [line.split() for line in lines if "pass_pattern_2" in line]
    assert changed[:5] == ["post-grad", "pass_pattern_2", "14", "->", "13"]
    assert " ".join(changed[5:]) == "addmm x2 (lines 19, 34)"
    (declined,) = [line for line in lines if "pass_pattern_0" in line]
    assert "no change" in declined
    assert not [line for line in lines if "view_to_reshape" in line]
    assert [line for line in printed(shown, Part.PASSES, Part.BACKWARD).splitlines() if "view_to_reshape" in line]


def test_the_total_says_what_passes_left():
    graphs = (Graph("0/0", "f", FILE, 1, 37),)
    lowered = FxGraph("0/0", Stage.LOWERED, Phase.FORWARD, 31, ())
    shown = report(graphs=graphs, fx_graphs=(lowered,), kernels=(PRODUCT,))
    assert words.totals(shown) == ("1 graph, 37 captured ops -> 31 after passes -> 0 kernels, 1 library call, 0 breaks")
    assert words.totals(report(graphs=graphs)) == "1 graph, 37 ops, 0 breaks"


def test_the_document_lists_what_changed_and_a_line_its_patterns():
    shown = report(passes=(DECLINED, ADDMM, BACKWARD))
    section = write(passes.section(shown), Markup.PLAIN)
    assert section == (
        "Passes that changed a graph (2)\n\n"
        "- 0/0 post-grad: pass_pattern_2, 14 -> 13 operators: addmm x2 (lines 19, 34)\n"
        "- 0/0 post-grad of the backward graph: view_to_reshape, 22 operators"
    )
    card = write(passes.card(shown, FILE, 34), Markup.PLAIN)
    assert card == "Patterns that Inductor found here\n\n- addmm x2 (lines 19, 34), post-grad"
    assert write(passes.card(shown, FILE, 20), Markup.PLAIN) == ""


def test_a_library_and_what_else_there_was_are_named():
    group = FusionGroup("0/0:0", PRODUCT.name, "extern", "none", (GroupOp("aten.mm", FILE, 19),))
    shown = report(graphs=(Graph("0/0", "f", FILE, 1, 9),), kernels=(PRODUCT,), fusion_groups=(group,))
    few, all_of_them = printed(shown), printed(shown, Part.KERNELS)
    assert "library: cuBLAS" in few
    assert "one of 5 ways: mm (library call), triton_mm (BLOCK_M=16), triton_mm (BLOCK_M=32), and 2 more" in few
    assert "(shown is the library call)" in few
    assert "triton_mm (BLOCK_M=128)" in all_of_them


def test_a_timed_choice_says_which_one_won():
    timed = Kernel("k", KernelLanguage.TRITON, Phase.FORWARD, "0/0", "", (), choices=(Choice("a", 2.0, True),))
    assert words.choices(timed, 3) == "one of 1 way: a 2.00 µs (chosen)"


def test_neighbours_with_something_to_tell_come_first():
    reasons = ("extern kernel: a library call is not fused", "no shared data", "memory deps did not match")
    told = apart.telling_first([ApartFrom(f"0/0:{at}", reason) for at, reason in enumerate(reasons)])
    assert [one.group for one in told] == ["0/0:2", "0/0:1", "0/0:0"]
