"""Times of a run for people: shares, what a phase takes beyond its parts, and what each compilation spent on what."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from inductoscope.protocol.report import Graph, PhaseTime, Rung, Status, TargetReport
from inductoscope.server import phases
from inductoscope.server.features import timeline
from inductoscope.server.features.markup import Heading, Markup, Points, write
from inductoscope.server.text.report import target
from inductoscope.server.text.view import Part, View

FILE = "/w/model.py"
TIMES = (
    PhaseTime("import", 100.0, 0.0),
    PhaseTime("drive", 890.0, 100.0),
    PhaseTime("compile", 800.0, 101.0, 1, "0/0"),
    PhaseTime("dynamo", 200.0, 102.0, 2, "0/0"),
    PhaseTime("inductoscope", 2.0, 103.0, 3, "0/0"),
    PhaseTime("backend", 590.0, 302.0, 2, "0/0"),
    PhaseTime("aot autograd", 580.0, 303.0, 5, "0/0"),
    PhaseTime("inductor", 460.0, 304.0, 6, "0/0"),
    PhaseTime("code generation", 400.0, 305.0, 7, "0/0"),
    PhaseTime("eager execution", 50.0, 910.0, 1, "0/0"),
)
REPORT = TargetReport(
    FILE,
    "Model.forward",
    6,
    "cpu",
    Rung.LOWER,
    Status.COMPILED,
    graphs=(Graph("0/0", "forward", FILE, 7, 3),),
    phases=TIMES,
    run_ms=1000.0,
)


def shown(report: TargetReport, *parts: Part) -> list[str]:
    console = Console(width=120, color_system=None, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(target(report, View(frozenset(parts), Path("/w"), lambda *_: "")))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_tree_is_indented_with_times_and_shares():
    lines = shown(REPORT, Part.PHASES)
    start = lines.index("  time in the worker: 1.00 s, of which Inductoscope's own 2.00 ms (0%)")
    assert [" ".join(line.split()) for line in lines[start + 1 :] if line] == [
        "import 100 ms 10.0%",
        "drive 890 ms 89.0%",
        "compile 0/0 (forward) 800 ms 80.0%",
        "dynamo 200 ms 20.0%",
        "backend 590 ms 59.0%",
        "aot autograd 580 ms 58.0%",
        "inductor 460 ms 46.0%",
        "code generation 400 ms 40.0%",
        "the rest 60.0 ms 6.0%",
        "the rest 120 ms 12.0%",
        "the rest 10.0 ms 1.0%",
        "the rest 10.0 ms 1.0%",
        "eager execution 0/0 (forward) 50.0 ms 5.0%",
        "the rest 40.0 ms 4.0%",
        "0/0 compiled in 800 ms: Dynamo 208 ms, AOTAutograd 130 ms, Inductor 460 ms, inductoscope 2.00 ms",
    ]
    assert [len(line) - len(line.lstrip()) for line in lines[start + 1 : start + 5]] == [4, 4, 6, 8]


def test_all_shows_the_small_ones_too():
    assert not any(line.strip().startswith("inductoscope") for line in shown(REPORT, Part.PHASES))
    assert any(line.strip().startswith("inductoscope") for line in shown(REPORT, Part.ALL))


def test_nothing_is_said_where_nothing_was_timed():
    nothing = TargetReport(FILE, "f", 6, "cpu", Rung.SCAN, Status.NO_INPUTS)
    assert not any("time in the worker" in line for line in shown(nothing, Part.PHASES))
    assert list(timeline.section(nothing)) == []


def test_the_parts_of_a_compilation_add_up_to_it():
    (one,) = phases.compilations(REPORT)
    assert one.dynamo + one.autograd + one.inductor + one.ours == pytest.approx(one.ms)


@pytest.mark.parametrize("line", [6, 7])
def test_the_line_where_a_function_begins_says_how_long_it_took(line: int):
    heading, points = timeline.card(REPORT, FILE, line)
    assert heading == Heading("Compiling took 800 ms here")
    assert isinstance(points, Points)
    assert points.items[0].startswith("0/0 compiled in 800 ms: Dynamo 208 ms")


def test_other_lines_say_nothing_of_it():
    assert list(timeline.card(REPORT, FILE, 8)) == []
    assert list(timeline.card(REPORT, "/w/other.py", 6)) == []


def test_the_document_has_the_tree():
    text = write(timeline.section(REPORT), Markup.PLAIN)
    assert text.startswith("Where the time went: 1.00 s in the worker\n\nimport ")
    assert "observing itself took 2.00 ms" in text
