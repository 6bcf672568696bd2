"""What counts as checked, failed with a sentence, crashed and timed out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Rung, Status, TargetReport
from inductoscope.server.workers import RunOutcome
from support.scripts import load

corpus = load("corpus")
Fate = corpus.Fate

FILE = Path("model.py")
REPORT = TargetReport("model.py", "Model.forward", 3, "cpu", Rung.LOWER, Status.COMPILED)


@pytest.mark.parametrize(
    ("kind", "fate"),
    [
        (FailureKind.RUN, Fate.SAID),
        (FailureKind.BAD_INPUTS, Fate.SAID),
        (FailureKind.MEMORY, Fate.SAID),
        (FailureKind.CRASH, Fate.CRASHED),
        (FailureKind.INTERNAL, Fate.CRASHED),
        (FailureKind.TIMEOUT, Fate.TIMED_OUT),
    ],
)
def test_a_failure_is_judged_by_its_kind(kind, fate):
    result = corpus.judged(FILE, RunOutcome(REPORT, Failure(kind, "what happened"), None))
    assert (result.fate, result.why) == (fate, "what happened")


def test_a_report_is_a_check_unless_compiling_failed():
    failed = replace(REPORT, status=Status.FAILED, message="Inductor raised")
    assert corpus.judged(FILE, RunOutcome(REPORT, None, None)).fate is Fate.REPORT
    result = corpus.judged(FILE, RunOutcome(failed, None, None))
    assert (result.fate, result.why) == (Fate.SAID, "Inductor raised")


def test_the_summary_counts_each_fate_and_tells_times():
    facts = {"status": "compiled"}
    results = [corpus.Result(FILE, Fate.REPORT, seconds, facts=facts) for seconds in (1.0, 2.0, 9.0)]
    text = corpus.summary([*results, corpus.Result(FILE, Fate.CRASHED, 4.0, "it was killed")])
    assert text.startswith("4 files") and "3 with a report" in text and "1 crashed" in text
    assert "reports: 3 compiled" in text and "model.py: it was killed" in text
    assert "3.0 s in the median" in text and "4.0 s at the 95th percentile" in text and "9.0 s at most" in text


@pytest.mark.slow
def test_a_folder_is_checked_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
    inputs = "def get_inputs():\n    return [torch.randn(4)]\n"
    (tmp_path / "good.py").write_text(model.format("x + 1") + inputs)
    (tmp_path / "bad.py").write_text(model.format("x.no_such_method()") + inputs)
    (tmp_path / "without_inputs.py").write_text(model.format("x + 1"))
    command = [str(tmp_path), "--rung", "capture", "--json", str(tmp_path / "results")]
    assert corpus.main(command) == 0
    said = capsys.readouterr().out
    assert "1 with a report" in said and "2 failed with a sentence" in said and "no_such_method" in said

    (tmp_path / "good.py").unlink()
    assert corpus.main(command) == 0
    again = capsys.readouterr().out.splitlines()
    assert again[0] == "2 files" and "no_such_method" in "".join(again), "what is known is told and not run again"


def test_one_file_of_every_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in "abcde":
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    assert corpus.main([str(tmp_path), "--every", "2"]) == 0
    said = capsys.readouterr().out
    assert "3 files" in said and "b.py" not in said and "e.py" in said
