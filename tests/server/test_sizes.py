"""What other sizes would do, in words: in a line, in sentences, and on the lines of the program."""

from __future__ import annotations

from dataclasses import replace

from inductoscope.protocol.report import GuardFact, Probe, ProbeOutcome, Rung, Status, TargetReport
from inductoscope.server import sizes
from inductoscope.server.features import held_to
from inductoscope.server.features.markup import Heading, Points

FILE = "/w/model.py"
BATCH = Probe(
    "x", 0, 4, 2, ProbeOutcome.DYNAMIC, "another size compiles once more, which then serves every size",
    together=("mask.shape[0]",),
)  # fmt: skip
LENGTH = Probe("x", 1, 8, 4, ProbeOutcome.DYNAMIC, "it is bounded", file=FILE, line=15)
ROWS = Probe("w", 0, 6, 3, ProbeOutcome.PINNED, "each size compiles again", file=FILE, line=18)
WIDTH = Probe("x", 2, 16, 8, ProbeOutcome.FAILS, "the program raises", file=FILE, line=12)
SIZE = GuardFact("0/0", "x", "size", "[4, 8, 16]", file=FILE, line=12)
DTYPE = GuardFact("0/0", "x", "dtype", "torch.float32", file=FILE, line=12)
GAIN = GuardFact("0/0", "self.gain", "value", "3", "self.gain == 3", file=FILE, line=12)
KEYS = GuardFact("0/0", "x", "dispatch-keys", "CPU", internal=True, file=FILE, line=12)
REPORT = TargetReport(
    FILE,
    "Model.forward",
    11,
    "cpu",
    Rung.CAPTURE,
    Status.COMPILED,
    guards=(SIZE, DTYPE, GAIN, KEYS, *(replace(one, compile_id="0/1") for one in (DTYPE, GAIN))),
    probes=(WIDTH, BATCH, LENGTH, ROWS),
)


def test_one_line_sums_up_what_is_not_quiet() -> None:
    assert sizes.summary(REPORT) == (
        "x.shape[0] and x.shape[1] (line 15) compile once more each, then other sizes fit; "
        "w.shape[0] (line 18) compiles again for each size"
    )
    assert sizes.summary(replace(REPORT, probes=(WIDTH,))) is None


def test_a_sentence_says_what_was_tried_and_what_changed_with_it() -> None:
    first, *_, last = sizes.sentences(REPORT)
    assert first == (
        "x.shape[0] with mask.shape[0]: another size compiles once more, which then serves every size "
        "(tried 2 instead of 4)"
    )
    assert last == "x.shape[2]: the program raises (tried 8 instead of 16; line 12)"


def test_the_definition_tells_of_all_sizes_and_a_line_of_those_that_it_decides() -> None:
    heading, points = held_to.cards(REPORT, FILE, 11)
    assert (heading, len(points.items)) == (Heading("Other sizes of the inputs"), 3)  # type: ignore[union-attr]
    heading, points = held_to.cards(REPORT, FILE, 18)
    assert points == Points((sizes.sentence(ROWS, FILE),))


def test_a_line_tells_the_guards_that_it_made_each_once() -> None:
    heading, points = held_to.cards(REPORT, FILE, 12)
    assert heading == Heading("Used again as long as")
    assert points == Points(("x: size [4, 8, 16], dtype torch.float32", "self.gain == 3", "x: dtype torch.float32"))
    assert list(held_to.cards(REPORT, FILE, 13)) == []


def test_what_there_was_no_time_for_is_said_only_in_full() -> None:
    late = replace(REPORT, probes=(BATCH,), untried="There was no time.")
    assert list(sizes.sentences(late))[1:] == ["There was no time."]
    assert "no time" not in str(sizes.summary(late))
