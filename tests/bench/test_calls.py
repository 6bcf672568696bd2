"""Calls with a backward pass, the lock, refusals, kernels of the CPU, the search for the first departing operator."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import fx

from inductoscope.compiler.bench import Subject, kernels, numerics
from inductoscope.compiler.bench.departure import Search
from inductoscope.compiler.bench.lock import exclusive
from inductoscope.compiler.bench.refusal import RefusedError, raised
from inductoscope.compiler.bench.subject import Call, eager_call
from inductoscope.protocol.bench import Passes


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for one another make small programs slow where the machine is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_backward_pass_gives_the_same_gradients_on_every_call():
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    call = Call(layer, ((x,), {}), Passes.BOTH)
    call()
    first = {name: value.grad.clone() for name, value in layer.named_parameters()}
    call()
    assert all(torch.equal(first[name], value.grad) for name, value in layer.named_parameters())
    assert torch.equal(layer.bias.grad, torch.full((2,), 4.0))
    assert x.grad is not None


def test_gradients_are_part_of_what_is_compared_under_their_names():
    call = Call(torch.nn.Linear(3, 2), ((torch.randn(4, 3),), {}), Passes.BOTH)
    everything = call.everything(call())
    assert numerics.names(everything) == ("result", "argument 0", "gradient of weight", "gradient of bias")
    assert len(numerics.snapshot(everything)) == 4


def test_without_anything_to_differentiate_there_is_a_sentence():
    call = Call(lambda x: x + 1, ((torch.randn(3),), {}), Passes.BOTH)
    with pytest.raises(RefusedError, match="nothing that the program returns requires a gradient"):
        call()


def test_values_are_called_as_the_program_would_write_them():
    call = Call(lambda x, y: {"logits": [x, y]}, ((torch.ones(1),), {"y": torch.ones(1)}))
    names = numerics.names(call.everything(call()))
    assert names == ("result['logits'][0]", "result['logits'][1]", "argument 0", "argument y")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), "The GPU's memory ran out"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "This machine's memory ran out"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "touched memory that is not its own"),
        (RuntimeError("CUDA error: device-side assert triggered"), "out of range"),
        (ValueError("x is odd\nand more"), "The eager program raised ValueError: x is odd."),
    ],
)
def test_each_way_to_fail_has_a_sentence(error, said):
    assert said in str(raised("the eager program", error))


def test_two_benchmarks_on_one_device_wait_for_each_other(tmp_path):
    waits, holds, done = threading.Event(), [], threading.Event()

    def second() -> None:
        with exclusive("a card", waits.set, tmp_path):
            holds.append("second")
        done.set()

    with exclusive("a card", lambda: pytest.fail("nobody else holds it"), tmp_path):
        threading.Thread(target=second, daemon=True).start()
        assert waits.wait(30)
        assert holds == []
    assert done.wait(30)
    assert holds == ["second"]


def test_other_devices_and_unwritable_folders_hold_nothing_up(tmp_path):
    fail = functools.partial(pytest.fail, "nobody else holds it")
    with (
        exclusive("card 0", fail, tmp_path),
        exclusive("card 1", fail, tmp_path),
        exclusive("x", fail, tmp_path / "no"),
    ):
        pass


def test_numbers_that_are_not_finite_on_both_sides_are_mentioned():
    value = (torch.tensor([1.0, float("nan")]),)
    result = numerics.compare(value, value, None)
    assert result.note == "1 of 2 elements of value 0 are NaN or infinite on both sides"


@pytest.mark.slow
def test_the_kernels_of_the_cpu_show_under_their_names():
    compiled = torch.compile(lambda x, w: torch.softmax(torch.relu(x @ w) * 2, -1))
    x, w = torch.randn(32, 64), torch.randn(64, 64)
    compiled(x, w)
    found = {kernel.name: kernel for kernel in kernels.account(lambda: compiled(x, w), "cpu").kernels}
    assert found["aten::mm"].launches == 1
    generated = [kernel for name, kernel in found.items() if name.startswith("cpp_fused")]
    assert generated
    assert all(kernel.launches == 1 and kernel.total_us > 0 for kernel in generated)


def wrong_in_cosine(module: fx.GraphModule, _: object) -> Callable[..., object]:
    """A backend that gets one operator wrong."""

    class Wrong(fx.Interpreter):
        def run_node(self, node: fx.Node) -> object:
            result = super().run_node(node)
            return result + 0.1 if node.target is torch.cos else result

    return lambda *args: Wrong(module).run(*args)


def program(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x) * 2
    z = torch.relu(y) + torch.cos(y)
    return (z * z).sum()


def place(node: fx.Node) -> tuple[str, int] | None:
    return "model.py", 7


def searched(compile: Callable[..., object]) -> object:
    subject = Subject(lambda: program, compile, lambda: ((torch.randn(16),), {}))
    return Search(subject, compile, place).first(lambda text: None)


@pytest.mark.slow
def test_the_first_operator_that_departs_is_found():
    found = searched(functools.partial(torch.compile, backend=wrong_in_cosine))
    assert (found.operator, found.file, found.line) == ("cos", "model.py", 7)
    assert found.tried <= 5
    assert found.max_rel_error > 0.01


@pytest.mark.slow
def test_without_a_departing_operator_that_is_said():
    found = searched(functools.partial(torch.compile, backend="eager"))
    assert found.operator is None
    assert "agrees when it is compiled alone" in found.note


def test_an_eager_call_has_the_passes_of_its_subject():
    subject = Subject(lambda: lambda x: x * 2, lambda program: program, lambda: ((torch.ones(1),), {}), Passes.BOTH)
    with pytest.raises(RefusedError):
        eager_call(subject)()
