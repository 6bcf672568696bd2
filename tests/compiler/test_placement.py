"""Where things go, with torch's meta device in the place of a GPU."""

from __future__ import annotations

import collections
import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from inductoscope.compiler import conventions, inputs, placement, resolve
from inductoscope.compiler.failures import RunFailedError
from inductoscope.compiler.inputs import GivenCalls
from inductoscope.compiler.placement import Placed, Placement
from inductoscope.protocol import devices
from inductoscope.protocol.messages import FailureKind
from support.model_text import is_user, module, target


class MetaDevice:
    def move(self, obj: Any) -> Any:
        return obj.to("meta")

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.zeros(tensor.shape)

    def syncs(self) -> tuple[()]:
        return ()

    def launches(self) -> tuple[()]:
        return ()

    def sentences(self) -> list[str]:
        return []


GPU = Placement(devices.parse("sim:H200"), MetaDevice())
CPU = Placement(devices.parse("cpu"))


def placed(text: str, entry: str = "f", where: Placement = GPU) -> Placed:
    made = module(text)
    said = conventions.read(made)
    program = resolve.resolve(made, target(entry), said, is_user)
    return placement.place(program, inputs.find(target(entry), program, said, is_user), said, where)


def devices_of(call: inputs.CallInputs) -> list[str]:
    return [value.device.type for value in (*call.args, *call.kwargs.values())]


F = "def f(x, y=None):\n    return x\n"
PAIR = "def get_inputs():\n    return [torch.ones(2), torch.ones(2)]\n"
MODEL = "class Model(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 2)\n"


def test_nothing_moves_for_the_cpu() -> None:
    result = placed(F + PAIR, where=CPU)
    assert isinstance(result.source, GivenCalls)
    assert devices_of(result.source.calls[0]) == ["cpu", "cpu"]


def test_given_inputs_and_the_module_move_except_what_is_kept() -> None:
    result = placed(f"{MODEL}def get_inputs():\n    return {{'input': torch.ones(2)}}\n", "Model")
    assert isinstance(result.source, GivenCalls)
    assert devices_of(result.source.calls[0]) == ["meta"]
    assert result.program.obj.weight.device.type == "meta"
    kept = placed(f"{F}{PAIR}KEEP_ON_CPU = [1]\n")
    assert isinstance(kept.source, GivenCalls)
    assert devices_of(kept.source.calls[0]) == ["meta", "cpu"]


def test_modules_that_a_function_names_move_with_given_inputs() -> None:
    made = "net = nn.Linear(2, 2)\ndef f(x):\n    return net(x)\ndef get_inputs():\n    return [torch.ones(2)]\n"
    assert placed(made).program.obj.__globals__["net"].weight.device.type == "meta"


def test_arguments_that_exercise_makes_move_at_each_call() -> None:
    result = placed(f"{MODEL}def exercise(fn):\n    fn(torch.ones(2))\n", "Model")
    (moved,), kwargs = result.on_call((torch.ones(2),), {"scale": 2.0})
    assert (moved.device.type, kwargs) == ("meta", {"scale": 2.0})


def test_a_program_made_for_gpus_puts_its_tensors_where_it_wants() -> None:
    result = placed(f"REQUIRES = 'cuda'\n{MODEL}def exercise(fn):\n    fn(torch.ones(2))\n", "Model")
    (same,), _ = result.on_call((torch.ones(2),), {})
    assert (same.device.type, result.program.obj.weight.device.type) == ("cpu", "meta")


def test_exercise_with_a_function_on_modules_of_the_file_stays_on_the_cpu_and_says_so() -> None:
    text = "net = nn.Linear(2, 2)\ndef f(x):\n    return net(x)\ndef exercise(fn):\n    fn(torch.ones(2))\n"
    result = placed(text)
    (same,), _ = result.on_call((torch.ones(2),), {})
    assert same.device.type == "cpu"
    assert result.note is not None
    assert "CPU" in result.note


def test_one_tensor_stays_one_until_its_values_change() -> None:
    move = placed(f"{F}def exercise(fn):\n    fn(torch.ones(2))\n").on_call
    tensor = torch.ones(2)
    (first, again), _ = move((tensor, tensor), {})
    (later,), _ = move((tensor,), {})
    assert first is again is later
    tensor.add_(1)
    (changed,), _ = move((tensor,), {})
    assert changed is not first


def test_marks_on_a_tensor_and_tensors_inside_containers_move() -> None:
    @dataclass(frozen=True)
    class Cache:
        keys: torch.Tensor

    pair = collections.namedtuple("pair", "a b")
    marked = torch.ones(4, 2)
    torch._dynamo.mark_dynamic(marked, 0)
    move = placed(f"{F}def exercise(fn):\n    fn(torch.ones(2))\n").on_call
    (tensor, listed, tupled, named, cache), kwargs = move(
        (marked, [marked], (marked, 1), pair(marked, "b"), Cache(torch.ones(1))), {"d": {"k": marked}}
    )
    assert tensor._dynamo_dynamic_indices == {0}
    assert listed[0] is tupled[0] is named.a is kwargs["d"]["k"] is tensor
    assert (type(named), named.b, tupled[1]) == (pair, "b", 1)
    assert dataclasses.asdict(cache)["keys"].device.type == "meta"


def test_devices_that_cannot_be_had_are_sentences() -> None:
    with pytest.raises(RunFailedError, match="No GPU named 'H900'") as unknown:
        placement.prepare("sim:H900", is_user)
    assert unknown.value.failure.kind is FailureKind.DEVICE
    if not torch.cuda.is_available():
        with pytest.raises(RunFailedError, match="--device sim:H200"):
            placement.prepare("cuda", is_user)
