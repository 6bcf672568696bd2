"""Positions in a program that was laid out anew, and reports told with them."""

from __future__ import annotations

import textwrap

import pytest

from inductoscope.protocol.report import (
    Finding,
    Kernel,
    KernelLanguage,
    Phase,
    Place,
    Rung,
    Severity,
    Status,
    TargetReport,
)
from inductoscope.server.alignment import Alignment
from inductoscope.server.positions import Text
from inductoscope.server.restating import restated

OLD = """\
import torch

def f(x):
    y = torch.relu(x)
    print(torch.add(y, 1), "ä", torch.mul(y, 2))
    return y
"""


def aligned(new: str, old: str = OLD) -> Alignment:
    return Alignment(Text(old), Text(new))


def test_a_comment_above_moves_what_is_below() -> None:
    move = aligned("# why\n\n" + OLD)
    assert [move.line(line) for line in (1, 3, 4, 5, 6)] == [3, 5, 6, 7, 8]


def test_a_comment_on_the_line_itself_keeps_it() -> None:
    move = aligned(OLD.replace("relu(x)", "relu(x)  # why"))
    assert move.line(4) == 4 and move.position(4, 8) == (4, 8)


def test_a_call_that_is_split_over_lines_is_found_by_its_column() -> None:
    new = OLD.replace(
        '    print(torch.add(y, 1), "ä", torch.mul(y, 2))\n',
        '    print(\n        torch.add(y, 1),\n        "ä",\n        torch.mul(y, 2),\n    )\n',
    )
    move = aligned(new)
    assert move.position(5, OLD.splitlines()[4].index("torch.add")) == (6, 8)
    assert move.position(5, OLD.splitlines()[4].index("torch.mul")) == (8, 8)
    assert move.line(5) == 5 and move.line(6) == 10


def test_lines_that_are_joined_are_found() -> None:
    old = "f(\n    a,\n    b,\n)\ng(c)\n"
    move = aligned("f(a, b)\ng(c)\n", old)
    assert [move.line(line) for line in (1, 2, 3, 5)] == [1, 1, 1, 2]


def test_a_docstring_that_comes_or_goes_moves_what_is_below() -> None:
    new = OLD.replace("def f(x):\n", 'def f(x):\n    """What it does.\n\n    More.\n    """\n')
    assert aligned(new).line(5) == 9
    assert aligned(OLD, new).line(9) == 5


def test_lines_that_are_no_code_go_with_their_neighbours() -> None:
    old = "# inputs: x\ndef f(x):\n    pass\n\n# end\n"
    move = aligned("import_me = 1\n# inputs: x\n# more\ndef f(x):\n    pass\n\n# end\n", old)
    assert move.line(1) == 2


def test_what_is_no_python_is_compared_line_by_line() -> None:
    move = aligned("\nnot python(\nat all\n", "not python(\nat all\n")
    assert [move.line(1), move.line(2)] == [2, 3]


def report(path: str = "/w/model.py", line: int = 5) -> TargetReport:
    message = f"Breaks at line {line}; see model.py:{line} and line 3 of other.py."
    finding = Finding("graph-break", Severity.WARNING, path, line, 4, line, 48, message, Rung.CAPTURE)
    kernel = Kernel("k", KernelLanguage.CPP, Phase.FORWARD, "0/0", f"// line {line}\n", (Place(path, line),))
    return TargetReport(path, "f", 3, "cpu", Rung.ASSEMBLE, Status.PARTIAL, findings=(finding,), kernels=(kernel,))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("# one\n", 6),
        ("# one\n# two\n\n", 8),
    ],
)
def test_a_report_is_told_with_the_lines_of_now(change: str, expected: int) -> None:
    after = restated(report(), {"/w/model.py": aligned(change + OLD)})
    (finding,), (kernel,) = after.findings, after.kernels
    assert (after.line, finding.line, finding.end_line) == (expected - 2, expected, expected)
    assert (finding.column, finding.end_column) == (4, 48)
    assert kernel.lines == (Place("/w/model.py", expected),)
    assert finding.message == f"Breaks at line {expected}; see model.py:{expected} and line 3 of other.py."
    assert kernel.source == report().kernels[0].source, "the lines of a kernel are its own"


def test_what_did_not_move_is_the_same_object() -> None:
    before = report()
    assert restated(before, {}) is before
    assert restated(before, {"/w/elsewhere.py": aligned("# one\n" + OLD)}) is before


def test_the_end_of_a_finding_moves_with_its_own_line() -> None:
    old = "f(a,\n  b)\n"
    finding = Finding("graph-break", Severity.WARNING, "/w/m.py", 1, 0, 2, 4, "", Rung.CAPTURE)
    after = restated(finding, {"/w/m.py": Alignment(Text(old), Text(textwrap.dedent("# x\nf(\n    a,\n    b,\n)\n")))})
    assert (after.line, after.column, after.end_line, after.end_column) == (2, 0, 5, 1)
