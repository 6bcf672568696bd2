"""Reading torch's own words about breaks and errors, and the source that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.compiler.capture.errors import error_finding, sentence
from inductoscope.compiler.capture.spans import span_of
from inductoscope.compiler.capture.syntax import decorators_at, loops_at, withs_at
from inductoscope.compiler.compat import dynamo, dynamo_breaks, dynamo_stacks, dynamo_trace
from inductoscope.compiler.marks import line_span
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.report import Outcome, Place
from inductoscope.protocol.torch_texts.breaks import outcome_of, read_breaks

pytestmark = pytest.mark.slow  # imports torch

CHAINED = """\
Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).
    Dynamo does not support it.
  Hint: Use `torch.cond` to express dynamic control flow.
  Hint: This graph break is fundamental.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit: https://example.org/gb0170.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
  Hint: This graph break may have been caused by an earlier graph break.

  Developer debug context: frame skipped: settle (/project/model.py line 5)
"""

PAYLOAD = """\
Graph break in user code at /env/lib/python3.11/site-packages/lib.py:8
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
  Hint: Avoid calling builtin `print`.

  Developer debug context: builtin print

User code traceback:
  File "/project/model.py", line 12, in torch_dynamo_resume_in_forward_at_9
    y = tell(x)
  File "/env/lib/python3.11/site-packages/lib.py", line 8, in tell
    print(x)

Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/_dynamo/symbolic_convert.py", line 1076, in wrapper
    return inner_fn(self, inst)
"""


def test_the_cause_comes_first() -> None:
    cause, consequence = read_breaks(CHAINED)
    assert (cause.kind, consequence.kind) == ("Data-dependent branching", "graph break in loop")
    assert cause.explanation.endswith("\nDynamo does not support it.")
    assert cause.hints == ("Use `torch.cond` to express dynamic control flow.", "This graph break is fundamental.")


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("Encountered graph break when attempting to trace CALL: a function call", Outcome.SPLIT),
        ("Encountered graph break that we cannot resume from. Compiling up to", Outcome.REST_EAGER),
        ("Failed to handle graph break gracefully. Skipping the function", Outcome.FUNCTION_EAGER),
        ("Data-dependent branching", Outcome.SPLIT),
    ],
)
def test_the_first_words_tell_what_follows(reason: str, outcome: Outcome) -> None:
    assert outcome_of(reason) is outcome


def test_a_trace_record_alone_tells_a_break() -> None:
    record = dynamo_trace.Record("dynamo_graph_break_reason", {}, PAYLOAD, "1/0", 0)
    event = dynamo.told_break(record)
    assert event is not None
    assert read_breaks(event.message)[0].kind == "Failed to trace builtin operator"
    assert [(frame.file, frame.line, frame.function) for frame in event.stack] == [
        ("/project/model.py", 12, "forward"),
        ("/env/lib/python3.11/site-packages/lib.py", 8, "tell"),
    ]


def test_every_type_in_the_registry_has_an_id_and_a_page() -> None:
    identifier = dynamo_breaks.break_id("Data-dependent branching")
    assert identifier == "GB0170"
    assert dynamo_breaks.break_link(identifier).endswith("/gb0170.html")
    assert dynamo_breaks.break_id("no such type") is None


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("forward", ("forward", False)),
        ("torch_dynamo_resume_in_forward_at_12", ("forward", True)),
        ("torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_5", ("f", True)),
        ("torch_dynamo_resume_in_<listcomp>_at_7", ("<listcomp>", True)),
    ],
)
def test_resumed_functions_keep_their_name(name: str, original: tuple[str, bool]) -> None:
    assert dynamo_stacks.original_name(name) == original


def test_an_error_that_tells_no_frames_is_placed_by_its_text() -> None:
    error = RuntimeError(
        "Constraints violated (L['x'].size()[1])! For more information, run with TORCH_LOGS=\"+dynamic\".\n"
        "  - You marked L['x'].size()[1] as dynamic but your code specialized it to be a constant (10).\n\n"
        'User stack:\n  File "/project/model.py", line 13, in forward\n    return h @ self.basis\n'
    )
    found = error_finding(error, UserCode(), Place("/project/model.py", 1))
    assert (found.file, found.line) == ("/project/model.py", 13)
    assert (
        sentence(error) == "You marked L['x'].size()[1] as dynamic but your code specialized it to be a constant (10)."
    )


SOURCE = """\
@decorated(
    "é")
def run(x):
    y = [
        f(x) for x in x
    ]
    while x:
        def inner(z):
            return z
        for i in range(3):
            with a, autocast("cpu"):
                x = g(x)
    héé = h(
        x,
    )
    return y
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def test_columns_are_code_points_and_ends_are_found(source: str) -> None:
    column = len("    héé = ".encode())
    span = span_of(Frame(source, 13, "run", column, 5))
    assert (span.line, span.column, span.end_line, span.end_column) == (13, 10, 15, 5)


def test_without_columns_the_line_is_marked(source: str) -> None:
    assert span_of(Frame(source, 16, "run")) == line_span(source, 16)
    assert (line_span(source, 16).column, line_span(source, 16).end_column) == (4, 12)


def test_loops_are_those_of_the_innermost_function(source: str) -> None:
    assert [loop.line for loop in loops_at(source, 5)] == [4]
    assert [loop.line for loop in loops_at(source, 12)] == [7, 10]
    assert loops_at(source, 9) == ()
    assert loops_at(source, 16) == ()


def test_statements_around_a_line(source: str) -> None:
    assert [block.line for block in withs_at(source, 12)] == [11]
    assert len(decorators_at(source, 5)) == 1
    assert decorators_at(source, 9) == ()
