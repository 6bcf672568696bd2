"""Arguments travel to a device and back: torch's meta device, with values beside it, in the place of a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from inductoscope.compiler import moving
from inductoscope.compiler.moving import Gradients, Traveller


@dataclass
class LazyDevice:
    """A device without memory; the values of its tensors stand beside them."""

    unknown: bool = False
    values: dict[int, torch.Tensor] = field(default_factory=dict)
    alive: list[torch.Tensor] = field(default_factory=list)

    def move(self, leaf: Any) -> Any:
        moved = leaf.to("meta")
        self.let(moved, leaf)
        return moved

    def let(self, there: torch.Tensor, value: torch.Tensor) -> None:
        """Give a device tensor a value, as an operation on the device would."""
        self.alive.append(there)
        self.values[id(there)] = value.detach().clone()

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        return None if self.unknown else self.values[id(tensor)].clone()


def travelling(device: LazyDevice) -> Traveller:
    return Traveller(device, frozenset(), Gradients.HERE)


def call(traveller: Traveller, *args: Any) -> tuple[Any, ...]:
    moved, kwargs = traveller.there(args, {})
    assert kwargs == {}
    return moved


def test_results_come_back_and_what_comes_back_goes_there_as_it_was() -> None:
    device = LazyDevice()
    traveller = travelling(device)
    call(traveller, torch.ones(2))
    result = torch.empty(2, device="meta")
    device.let(result, torch.tensor([3.0, 4.0]))
    here = traveller.back([result, (result, 1)])
    assert here[0].tolist() == [3.0, 4.0]
    assert here[0] is here[1][0]
    (again,) = call(traveller, here[0])
    assert again is result


def test_an_argument_that_is_returned_is_the_callers_own() -> None:
    traveller = travelling(LazyDevice())
    x = torch.ones(2)
    (there,) = call(traveller, x)
    assert traveller.back(there) is x


def test_what_a_call_writes_into_an_argument_is_written_here_too() -> None:
    device = LazyDevice()
    traveller = travelling(device)
    x, before = torch.ones(2), torch.ones(2)
    (there,) = call(traveller, x)
    there.add_(1)
    device.let(there, before + 1)
    traveller.back(None)
    assert x.tolist() == [2.0, 2.0]
    (again,) = call(traveller, x)
    assert again is there


def test_containers_stay_the_same_objects_and_keep_what_is_put_in() -> None:
    device = LazyDevice()
    traveller = travelling(device)
    x = torch.ones(2)
    history, cache = [x], {"x": x}
    moved = call(traveller, history, cache)
    assert moved[0] is history
    assert history[0] is cache["x"]
    assert history[0].device.type == "meta"
    new = torch.empty(1, device="meta")
    device.let(new, torch.tensor([7.0]))
    history.append(new)
    traveller.back(None)
    assert history[0] is cache["x"] is x
    assert history[1].tolist() == [7.0]


def test_gradients_of_a_leaf_are_added_to_those_of_the_leaf_itself() -> None:
    device = LazyDevice()
    traveller = travelling(device)
    weight = torch.nn.Parameter(torch.ones(2))
    (there,) = call(traveller, weight)
    assert isinstance(there, torch.nn.Parameter)
    gradient = torch.empty(2, device="meta")
    device.bring_back = lambda _tensor: torch.tensor([1.0, 2.0])  # type: ignore[method-assign]
    for _ in range(2):
        there.backward(gradient)
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 4.0]
    assert there.grad is None


def test_a_tensor_with_a_history_stays_connected_to_it() -> None:
    device = LazyDevice()
    x = torch.ones(2, requires_grad=True)
    (there,) = call(travelling(device), x * 3)
    device.bring_back = lambda _tensor: torch.ones(2)  # type: ignore[method-assign]
    there.backward(torch.empty(2, device="meta"))
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("flag", [True, False])
def test_a_tensor_goes_there_anew_when_it_wants_gradients_or_no_longer(flag: bool) -> None:
    traveller = travelling(LazyDevice())
    x = torch.ones(2, requires_grad=not flag)
    (first,) = call(traveller, x)
    (second,) = call(traveller, x.requires_grad_(flag))
    assert (first.requires_grad, second.requires_grad) == (not flag, flag)


def test_values_that_cannot_be_told_stay_there() -> None:
    traveller = travelling(LazyDevice(unknown=True))
    call(traveller, torch.ones(2))
    result = torch.empty(2, device="meta")
    assert traveller.back(result) is result


def test_modules_are_exchanged_as_a_whole() -> None:
    linear = torch.nn.Linear(1, 1)
    assert moving.exchanged([linear], torch.Tensor.clone, lambda _module: torch.nn.Identity())[0] is not linear
