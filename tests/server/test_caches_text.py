"""Torch's caches for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from inductoscope.protocol.report import CacheFact, Phase, Rung, Status, TargetReport
from inductoscope.server import caches
from inductoscope.server.text.report import target
from inductoscope.server.text.view import Part, View

FILE = "/w/model.py"
FACTS = (
    CacheFact("aot_autograd", "bypass", ("Unsupported call",), "0/0", None, Phase.FORWARD, FILE, 7),
    CacheFact("fx_graph", "hit", ("an entry lies in /c",), "0/0", "fabc", Phase.FORWARD),
    CacheFact("fx_graph", "miss", ("no entry in /c", "compared: x differs"), "0/0", "fdef", Phase.BACKWARD),
)
REPORT = TargetReport(FILE, "f", 6, "cpu", Rung.LOWER, Status.COMPILED, caches=FACTS)


def shown(report: TargetReport, *parts: Part) -> str:
    console = Console(width=120, color_system=None, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(target(report, View(frozenset(parts), Path("/w"), lambda *_: "")))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_each_fact_has_its_reasons_line_and_key_below_it():
    assert """\
  torch's caches, if the program were started now: AOTAutograd cache 1 bypass; FX-graph cache 1 hit, 1 miss
    graph 0/0, AOTAutograd cache: bypass
      Unsupported call
      because of model.py:7
    graph 0/0, FX-graph cache: hit
      an entry lies in /c
      key fabc
    graph 0/0, backward, FX-graph cache: miss
      no entry in /c
      compared: x differs
      key fdef""" in shown(REPORT, Part.CACHES)


def test_they_are_shown_only_when_asked_for_and_known():
    assert "caches" not in shown(REPORT)
    assert "caches" not in shown(TargetReport(FILE, "f", 6, "cpu", Rung.SCAN, Status.NO_INPUTS), Part.CACHES)


def test_a_fact_is_one_line_in_documents():
    assert caches.line(FACTS[2]) == "FX-graph cache, graph 0/0, backward: miss (no entry in /c; compared: x differs)"


REMOTE = tuple(
    CacheFact(f"remote_{name}", "off", ("only inside of Meta", f"config.{name} is not set"))
    for name in ("pgo", "autotune")
)


def test_remote_caches_of_one_answer_are_one_entry():
    program = CacheFact("remote_fx_graph", "unknown", ("nothing remote is asked", "config.fx is True"))
    report = replace(REPORT, caches=(*FACTS[1:2], *REMOTE, program))
    assert """\
    the program, remote PGO, autotuning caches: off
      only inside of Meta
      config.pgo, config.autotune are not set
    the program, remote FX-graph cache: unknown
      nothing remote is asked
      config.fx is True""" in shown(report, Part.CACHES)
    assert caches.summary(report) == "FX-graph cache 1 hit"


def test_why_something_is_not_known_is_said_once():
    facts = (
        CacheFact("aot_autograd", "unknown", ("elsewhere", "the same as before"), "0/0"),
        CacheFact("fx_graph", "unknown", ("elsewhere", "x differs"), "0/0"),
        CacheFact("fx_graph", "miss", ("y differs",), "0/1"),
    )
    told = caches.told(replace(REPORT, caches=facts))
    assert [fact.because for fact in told] == [("elsewhere", "the same as before"), ("x differs",), ("y differs",)]
