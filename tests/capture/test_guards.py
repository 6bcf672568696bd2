"""Reading the reasons for recompilations; the texts are torch 2.13's."""

from __future__ import annotations

import json

import pytest

from inductoscope.compiler.capture.guards import guard_failure
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.torch_texts.guards import family, read_reasons

pytestmark = pytest.mark.slow  # imports torch

WITH_LINE = (
    "0/0: self.calls == 0                                          # self.calls += 1  # ject/model.py:14 in forward "
    "(HINT: torch.compile considers integer attributes of the nn.Module to be static.)\n"
    "User stack trace:\n"
    '  File "/project/model.py", line 14, in forward\n'
    "    self.calls += 1\n"
    '  File "/env/lib/python3.11/site-packages/torch/_dynamo/polyfills/__init__.py", line 487, in getattr_and_trace\n'
    "    return fn(*args[2:], **kwargs)"
)


def test_one_reason_is_bare_text() -> None:
    (reason,) = read_reasons(WITH_LINE)
    assert (reason.compile_id, reason.guard) == ("0/0", "self.calls == 0")
    assert reason.hint == "torch.compile considers integer attributes of the nn.Module to be static."
    assert (reason.stack[0].file, reason.stack[0].line) == ("/project/model.py", 14)


def test_several_reasons_are_a_list_with_the_newest_first() -> None:
    reasons = read_reasons(
        json.dumps(["0/1: x == 2", "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5"])
    )
    assert [reason.compile_id for reason in reasons] == ["0/1", "0/0"]
    assert reasons[1].guard == "tensor 'x' size mismatch at index 0. expected 4, actual 5"


def test_the_line_is_the_innermost_of_the_user() -> None:
    failure = guard_failure(read_reasons(WITH_LINE)[0], UserCode(), None)
    assert (failure.file, failure.line) == ("/project/model.py", 14)


def test_a_hash_in_a_text_is_no_comment() -> None:
    text = "0/0: text == 'a  # b'                                      # use(text)  # model.py:3 in run"
    assert read_reasons(text)[0].guard == "text == 'a  # b'"


@pytest.mark.parametrize(
    ("guard", "source", "kind", "expected", "actual"),
    [
        ("tensor 'x' size mismatch at index 0. expected 4, actual 6", "x", "size", "4", "6"),
        ("tensor 'args[0]' stride mismatch at index 1. expected 64, actual 1", "args[0]", "stride", "64", "1"),
        ("tensor 'a' requires_grad mismatch. expected requires_grad=0", "a", "requires-grad", "requires_grad=0", None),
        ("tensor 'x' dtype mismatch. expected Float, actual Double", "x", "dtype", "Float", "Double"),
        ("GLOBAL_STATE changed: grad_mode ", "grad_mode", "global-state", None, None),
        ("BACKEND_MATCH failure: torch.compile detected different callables.", "backend", "backend", None, None),
        ("text == 'a cat'", "text", "value", "'a cat'", None),
        ("len(features) != 3", "len(features)", "condition", "len(features) != 3", None),
        ("len(self.history) == 3", "self.history", "length", "3", None),
        ("not self.history", "self.history", "length", "empty", None),
        ("2 <= x.size()[0]", "x.size()[0]", "shape", "2 <= x.size()[0]", None),
        ("2 <= x.size()[0] <= 15", "x.size()[0]", "shape", "2 <= x.size()[0] <= 15", None),
        ("___dict_contains('k', options)", "options", "key", "yes", None),
        ("not hasattr(x, '_flag')", "x", "attribute", "no", None),
        ("___check_type_id(n, 94), type=<class 'int'>", "n", "type", "<class 'int'>", None),
    ],
)
def test_guards_are_taken_apart(guard: str, source: str, kind: str, expected: str | None, actual: str | None) -> None:
    failure = guard_failure(read_reasons(f"0/0: {guard}")[0], UserCode(), None)
    assert (failure.source, failure.kind, failure.expected, failure.actual) == (source, kind, expected, actual)


@pytest.mark.parametrize(
    ("guard", "same"),
    [
        ("tensor 'x' size mismatch at index 0. expected 4, actual 6", "tensor 'x' size mismatch"),
        ("text == 'a cat'", "text == 'S'"),
        ("G['CALLS']['n'] == 12", "G['CALLS']['n'] == N"),
        ("GLOBAL_STATE changed: grad_mode ", "GLOBAL_STATE changed: grad_mode"),
        ("BACKEND_MATCH failure: torch.compile detected different backend callables.", "BACKEND_MATCH failure"),
        ("self.param_groups[0]['lr'] == 0.01", "self.param_groups[N]['lr'] == N"),
    ],
)
def test_repetitions_share_a_family(guard: str, same: str) -> None:
    assert family(guard) == same


class Holder:
    def __init__(self) -> None:
        self.steps = [1, 2]

    @property
    def costly(self) -> int:
        raise AssertionError("a property of the user's was run")


@pytest.mark.parametrize(
    ("guard", "actual"),
    [
        ("holder.steps[1] == 5", "2"),
        ("len(holder.steps) == 1", "2"),
        ("G['LEVEL'] == 1", "7"),
        ("2 <= G['LEVEL'] <= 6", "7"),
        ("holder.costly == 1", None),
        ("holder.absent == 1", None),
        ("gone == 1", None),
    ],
)
def test_values_are_read_without_running_code(guard: str, actual: str | None) -> None:
    variables = {"holder": Holder(), "G": {"LEVEL": 7}}
    assert guard_failure(read_reasons(f"0/0: {guard}")[0], UserCode(), variables).actual == actual
