"""Guards as text, and which of them are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from inductoscope.protocol.report import (
    Dimension,
    DimensionLimit,
    DimensionState,
    Graph,
    GuardFact,
    GuardFailure,
    Reuse,
    Rung,
    Status,
    TargetReport,
    WhatIf,
)
from inductoscope.server.text.guards import Selection, target
from inductoscope.server.text.view import Part, View

FILE = "/w/model.py"
SIZE = GuardFact("0/0", "x", "size", "[any, 8]", file=FILE, line=7)
DTYPE = GuardFact("0/0", "x", "dtype", "torch.float32", file=FILE, line=7)
GAIN = GuardFact("0/0", "self.x_gain", "value", "3", "self.x_gain == 3", file=FILE, line=8)
BOUND = GuardFact("0/0", "x.size()[0]", "shape", None, "x.size()[0] <= 99", file=FILE, line=9)
STATE = GuardFact("0/0", "torch", "global-state", None, "___check_global_state()", internal=True)
LIMIT = DimensionLimit("x.size()[0] <= 99", FILE, 9)
BATCH = Dimension("0/0", "x", 0, DimensionState.DYNAMIC, 24, "s77", 2, 99, 4, (LIMIT,))
WIDTH = Dimension("0/0", "x", 1, DimensionState.STATIC, 8)
FAILED = GuardFailure("x", "size", "12", "48", "tensor 'x' size mismatch", "", FILE, 7)
ASKED = WhatIf(("f32[48, 8]",), Reuse.RECOMPILES, "f would be compiled again.", (FAILED, FAILED), "f", FILE, 6)
REPORT = TargetReport(
    FILE,
    "f",
    6,
    "cpu",
    Rung.CAPTURE,
    Status.COMPILED,
    graphs=(Graph("0/0", "f", FILE, 6, 3),),
    guards=(STATE, SIZE, DTYPE, GAIN, BOUND),
    dimensions=(BATCH, WIDTH),
    what_if=(ASKED,),
)

ANY = Selection()


def text(report: TargetReport, *parts: Part, wanted: Selection = ANY) -> str:
    console = Console(width=120, color_system=None, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(target(report, View(frozenset(parts), Path("/w"), lambda file, line: f"line {line}"), wanted))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_guards_stand_under_their_lines() -> None:
    assert (
        text(REPORT)
        == """\
f  model.py:6  CPU  compiled

  compiled version 0/0 of f is used again as long as
    model.py:7  line 7
      x: size [any, 8], dtype torch.float32
    model.py:8  line 8
      self.x_gain == 3
    model.py:9  line 9
      x.size()[0] <= 99
    and 1 that are torch's own (-v shows them)
    dimensions
      x.shape[0]: dynamic (s77), from 2 to 99, multiples of 4; compiled with 24
        x.size()[0] <= 99  model.py:9
      x.shape[1]: static, 8

  f32[48, 8]  recompiles
    f would be compiled again.
    the function: model.py:6
      x size: expected 12, actual 48  model.py:7
"""
    )


def test_torch_s_own_guards_are_shown_when_all_is() -> None:
    assert "___check_global_state()" in text(REPORT, Part.ALL)


@pytest.mark.parametrize(
    ("selection", "guards", "dimensions"),
    [
        (Selection(), REPORT.guards, REPORT.dimensions),
        (Selection(line=9), (BOUND,), (BATCH,)),
        (Selection(argument="x"), (SIZE, DTYPE, BOUND), (BATCH, WIDTH)),
        (Selection(argument="self.x_gain"), (GAIN,), ()),
        (Selection(line=7, argument="self"), (), ()),
    ],
)
def test_a_selection_keeps_what_is_asked_for(
    selection: Selection, guards: tuple[GuardFact, ...], dimensions: tuple[Dimension, ...]
) -> None:
    kept = selection.of(REPORT)
    assert (kept.guards, kept.dimensions, kept.what_if) == (guards, dimensions, (ASKED,))


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(line=99), "no guard was made on line 99; those of this file come from lines 7, 8, 9"),
        (Selection(argument="y"), "no guard is on y; there are guards on x, self.x_gain"),
        (Selection(line=8, argument="x"), "no guard on x was made on line 8"),
    ],
)
def test_who_asks_for_guards_that_are_none_is_told_which_there_are(selection: Selection, said: str) -> None:
    assert f"  {said}\n" in text(REPORT, wanted=selection)


def test_a_program_without_guards_has_none_to_ask_for() -> None:
    assert "  no guards\n" in text(replace(REPORT, guards=(), dimensions=()), wanted=Selection(line=7))
