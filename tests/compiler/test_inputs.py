import collections

import pytest
import torch

from inductoscope.compiler import inputs
from inductoscope.compiler.failures import RunFailedError
from inductoscope.compiler.inputs import Exercise, GivenCalls, describe, describe_call
from inductoscope.protocol import input_spec
from inductoscope.protocol.input_spec import DTYPES
from inductoscope.protocol.messages import Failure, FailureKind
from support.model_text import FILE, found

F = "def f(x, mask=None):\n    return x\n"


def shapes(text: str, comment: str | None = None) -> list[tuple[str, ...]]:
    source = found(text, comment=comment)
    assert isinstance(source, GivenCalls)
    return [describe_call(call.args, call.kwargs) for call in source.calls]


def failure(text: str, comment: str | None = None) -> Failure:
    with pytest.raises(RunFailedError) as caught:
        found(text, comment=comment)
    assert "Traceback" not in caught.value.failure.message
    return caught.value.failure


def test_a_comment_comes_first_and_gives_one_call_a_set() -> None:
    text = f"{F}\ndef get_inputs():\n    raise RuntimeError\n"
    assert shapes(text, "f32[4, 8], mask=bool[4]; x=bf16[2]") == [("f32[4, 8]", "mask=bool[4]"), ("x=bf16[2]",)]


def test_a_star_adds_a_call_with_another_size() -> None:
    assert shapes(F, "f32[4*, 8]") == [("f32[4, 8]",), ("f32[8, 8]",)]


def test_exercise_comes_before_input_sets_and_these_before_inputs() -> None:
    one = f"{F}\ndef get_inputs():\n    return [torch.ones(1)]\n"
    sets = f"{one}\ndef get_input_sets():\n    return [(torch.ones(2),), [torch.ones(3)]]\n"
    assert shapes(one) == [("f32[1]",)]
    assert shapes(sets) == [("f32[2]",), ("f32[3]",)]
    assert isinstance(found(f"{sets}\ndef exercise(fn):\n    fn(torch.ones(4))\n"), Exercise)


@pytest.mark.parametrize(
    ("returned", "call"),
    [
        ("[torch.ones(2)]", ("f32[2]",)),
        ("(torch.ones(2), None)", ("f32[2]", "None")),
        ("{'x': torch.ones(2)}", ("x=f32[2]",)),
        ("torch.ones(2, 3)", ("f32[2, 3]",)),
    ],
)
def test_what_get_inputs_may_return(returned: str, call: tuple[str, ...]) -> None:
    assert shapes(f"{F}\ndef get_inputs():\n    return {returned}\n") == [call]


def test_a_function_without_parameters_is_called_with_nothing() -> None:
    assert shapes("def f():\n    return 1\n") == [()]


def test_no_inputs_is_said_with_a_comment_to_write() -> None:
    told = failure("def f(q, k, *, scale=1.0):\n    return q\n")
    assert told.kind is FailureKind.NO_INPUTS
    assert "# inductoscope: q=f32[4, 128], k=f32[4, 128]" in told.message


def test_a_wrong_comment_is_said_with_what_is_wrong() -> None:
    told = failure(F, "x=f33[4]")
    assert told.kind is FailureKind.BAD_INPUTS
    assert "did you mean f32?" in told.message


def test_inputs_that_do_not_fit_are_said_with_signature_values_and_origin() -> None:
    told = failure(f"{F}\ndef get_inputs():\n    return [torch.ones(1), torch.ones(2), 3]\n")
    assert told.kind is FailureKind.BAD_INPUTS
    assert "f(x, mask=None) cannot be called with (f32[1], f32[2], 3): too many positional arguments" in told.message
    assert "get_inputs at line 4" in told.message
    assert (told.place.file, told.place.line) == (FILE, 4)


def test_an_unknown_name_in_a_comment_does_not_fit() -> None:
    assert "unexpected keyword argument 'masc'" in failure(F, "f32[4], masc=bool[4]").message


def test_forward_is_what_the_inputs_of_a_module_have_to_fit() -> None:
    text = "class N(nn.Module):\n    def forward(self, x):\n        return x\n"
    for made in ("f = N()\n", "f = torch.compile(N(), backend='eager')\n"):
        assert "f(x) cannot be called" in failure(f"{text}{made}", "f32[1], f32[1]").message


def test_an_error_in_get_inputs_is_placed_on_its_line() -> None:
    told = failure(f"{F}\ndef get_inputs():\n    return [torch.ones(-1)]\n")
    assert (told.kind, told.place.line) == (FailureKind.RUN, 5)
    assert "get_inputs() raises an error of its own at line 5" in told.message


def test_an_error_while_input_sets_are_made_one_by_one_is_placed_on_its_line() -> None:
    told = failure(f"{F}\ndef get_input_sets():\n    yield (torch.ones(2),)\n    raise ValueError('late')\n")
    assert (told.kind, told.place.line) == (FailureKind.RUN, 6)
    assert "get_input_sets() raises an error of its own at line 6" in told.message


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("def get_inputs():\n    pass", "NoneType"),
        ("def get_inputs():\n    yield torch.ones(2)", "generator"),
        ("async def get_inputs():\n    return [torch.ones(2)]", "coroutine"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_what_get_inputs_returns_has_to_be_arguments(text: str, sort: str) -> None:
    told = failure(f"{F}\n{text}\n")
    assert told.kind is FailureKind.BAD_INPUTS
    assert f"get_inputs() returned a {sort}" in told.message


def test_inputs_that_no_machine_can_hold_are_told_with_their_sizes() -> None:
    told = failure(F, comment="f32[1000000000, 1000000000]")
    assert told.kind is FailureKind.BAD_INPUTS
    assert "f32[1000000000, 1000000000]" in told.message and "Use smaller ones" in told.message


def test_input_sets_have_to_be_a_list_of_sets() -> None:
    assert "returned a Tensor" in failure(f"{F}\ndef get_input_sets():\n    return torch.ones(2)\n").message
    assert failure(f"{F}\ndef get_input_sets():\n    return []\n").kind is FailureKind.NO_INPUTS


@pytest.mark.parametrize("dtype", sorted(set(DTYPES.values())))
def test_tensors_of_every_dtype_of_the_language_can_be_made(dtype: str) -> None:
    tensor = inputs.random_tensor(getattr(torch, dtype), (2, 3))
    assert (tensor.dtype, tensor.shape) == (getattr(torch, dtype), (2, 3))


def test_integers_are_valid_indices_of_any_table_of_two_rows() -> None:
    values = inputs.random_tensor(torch.int64, (1000,))
    assert set(values.tolist()) == {0, 1}


def test_values_of_a_comment_may_nest_and_hold_literals() -> None:
    (call,) = input_spec.parse("{'kv': (f32[2], [1, 'a;b'])}")
    value = inputs.build(call.arguments[0].value)
    assert value["kv"][1] == [1, "a;b"]
    assert value["kv"][0].shape == (2,)


def test_descriptions_read_like_the_comment() -> None:
    pair = collections.namedtuple("pair", "a b")
    assert describe({"kv": [torch.ones(2), (1,)]}) == "{'kv': [f32[2], (1,)]}"
    assert describe(pair(1, 2)) == "pair"
    assert describe("x" * 100).endswith("…")
    endless: list[object] = []
    endless.append(endless)
    assert describe(endless).startswith("[[[")
    assert len(describe([0] * 1_000_000)) <= 60
    assert describe(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])) == "Tensor"
    assert describe(torch.nn.Linear(1, 1)) == "Linear"
