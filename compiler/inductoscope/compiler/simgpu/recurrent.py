"""Recurrent layers as cuDNN has them: one operation for all steps, layers and directions, and one for its backward.

Eager `nn.LSTM`, `nn.GRU` and `nn.RNN` end in functions of `torch._VF`, which call cuDNN below the dispatcher.  Without
cuDNN they are hundreds of small operations a step, which a program would wait for although nobody looks.  Here a call
is one entry of the tape; values are those of the CPU's own layer, gradients those of the same layer run again.
Shapes, and complaints about arguments that do not fit, come from running the first step alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patches
from inductoscope.compiler.simgpu.rng import seeded
from inductoscope.compiler.simgpu.tape import Entry, Operands, Ref

_Run = Callable[..., Any]


def install(mode: SimulatedDeviceMode, patches: Patches) -> None:
    """Patch the functions that recurrent layers end in, and the packing of their weights."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        layers = _Layers(mode, name, getattr(torch._VF, name))
        why = "eager recurrent layers call cuDNN below the dispatcher"
        patches.wrap(torch._VF, name, layers.patched, why=why)

    def make_flatten(original: Callable[..., None]) -> Callable[..., None]:
        def flatten(layer: Any) -> None:
            # All of them are ours; `torch.func` wraps them, so that `mode.owns` would not know them.
            if not any(isinstance(weight, torch.Tensor) and weight.is_cuda for weight in layer._flat_weights):
                original(layer)

        return flatten

    why = "packs the weights for cuDNN, by address"
    patches.wrap(torch.nn.RNNBase, "flatten_parameters", make_flatten, why=why)


@dataclass(frozen=True)
class _Call:
    """One call, time first: the arguments of `torch._VF.lstm` and its like, tensors and settings apart.

    `batch_sizes` (steps, int64, on the CPU) is there for packed sequences.  `states` counts the initial states, which
    come after the input in `tensors`; the weights follow.
    """

    function: _Run
    batch_sizes: torch.Tensor | None
    states: int
    tensors: tuple[torch.Tensor, ...]
    as_list: bool
    has_biases: bool
    layers: int
    dropout: float
    train: bool
    bidirectional: bool

    @staticmethod
    def of(function: _Run, args: tuple[Any, ...]) -> _Call:
        """Raises TypeError or ValueError where `args` are not those of a recurrent layer."""
        if isinstance(args[3], bool):  # input, states, weights, has_biases, ...
            data, hx, weights, *settings, batch_first = args
            data, sizes = (data.transpose(0, 1) if batch_first else data), None
        else:
            data, sizes, hx, weights, *settings = args
        as_list = isinstance(hx, tuple | list)
        states = tuple(hx) if as_list else (hx,)
        return _Call(function, sizes, len(states), (data, *states, *weights), as_list, *settings)

    def __call__(self, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Run it, time first."""
        data, states, weights = tensors[0], tensors[1 : 1 + self.states], tensors[1 + self.states :]
        hx = list(states) if self.as_list else states[0]
        settings = (self.has_biases, self.layers, self.dropout, self.train, self.bidirectional)
        if self.batch_sizes is None:
            results = self.function(data, hx, list(weights), *settings, False)
        else:
            results = self.function(data, self.batch_sizes, hx, list(weights), *settings)
        return tuple(results)

    def first_step(self) -> tuple[torch.Tensor, ...]:
        """The results for the first step alone, without data."""
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            data, *rest = (torch.empty(t.shape, dtype=t.dtype, device="meta") for t in self.tensors)
            if self.batch_sizes is None:
                return self((data[:1], *rest))
            sizes = self.batch_sizes[:1]
            return replace(self, batch_sizes=sizes)((data[: int(sizes[0])], *rest))

    @property
    def cost(self) -> float:
        """Multiplications and additions: every weight is used once for each element of each step."""
        rows = self.tensors[0].shape[:-1].numel()
        return 2.0 * rows * sum(weight.numel() for weight in self.tensors[1 + self.states :] if weight.dim() == 2)


class _Layers:
    """What stands for one function of `torch._VF`."""

    def __init__(self, mode: SimulatedDeviceMode, name: str, original: _Run) -> None:
        self._mode, self._name, self._original = mode, name, original

    def patched(self, _: _Run) -> _Run:
        """The function to put there: out of Dynamo's sight as it runs, one node of a graph where Dynamo captures it."""
        called = torch._dynamo.disable(self)

        def layers(*args: Any, **kwargs: Any) -> Any:
            return called(*args, **kwargs)

        layers.__name__ = self._name
        torch._dynamo.allow_in_graph(layers)
        return layers

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        call = None if kwargs else self._call(args)
        if call is None:
            with _without_cudnn():
                return self._original(*args, **kwargs)
        tensors = tuple(map(_in_half, call.tensors)) if torch.is_autocast_enabled("cuda") else call.tensors
        output, *states = _OneOperation.apply(self, replace(call, tensors=()), *tensors)
        batch_first = call.batch_sizes is None and args[-1]
        return (output.transpose(0, 1) if batch_first else output, *states)

    def _call(self, args: tuple[Any, ...]) -> _Call | None:
        """The call, if a card's cuDNN would do it; else it is run step by step, as on a card."""
        if torch._C._functorch.peek_interpreter_stack() is not None or not torch._C._get_cudnn_enabled():
            return None
        try:
            call = _Call.of(self._original, args)
        except (AttributeError, IndexError, TypeError, ValueError):
            return None
        ours = all(self._mode.owns(tensor) for tensor in call.tensors)
        return call if ours and self._mode.is_in_charge() and call.tensors[0].numel() else None

    # -- one call and its backward

    def forward(self, call: _Call) -> tuple[tuple[torch.Tensor, ...], _Run]:
        """The results on the device, and what computes them from `call.tensors` on the CPU."""
        data, settings = call.tensors[0], replace(call, tensors=())
        output, *states = call.first_step()
        shapes = ((*data.shape[:-1], output.shape[-1]), *(state.shape for state in states))
        with self._mode.fake:
            results = tuple(data.new_empty(shape) for shape in shapes)

        def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return settings(tensors)

        if call.train and call.dropout and call.layers > 1:
            run = seeded(run, (), {})
        self._record(run, call.tensors, results, call.cost, "")
        return results, run

    def backward(
        self, run: _Run, cost: float, tensors: tuple[torch.Tensor, ...], wanted: list[int], upstream: tuple[Any, ...]
    ) -> list[torch.Tensor]:
        """Gradients for the `wanted` of `tensors`; `upstream` are those of the results."""
        with self._mode.fake:
            results = [tensors[index].new_empty(tensors[index].shape) for index in wanted]

        def again(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            with torch.inference_mode(False), torch.enable_grad():
                leaves = [tensor.clone().requires_grad_() for tensor in given[: len(tensors)]]
                grads = [tensor.clone() for tensor in given[len(tensors) :]]
                outputs = run(*leaves)
                return torch.autograd.grad(outputs, [leaves[index] for index in wanted], grads)

        self._record(again, (*tensors, *upstream), tuple(results), 3 * cost, "_backward")
        return results

    def _record(
        self, run: _Run, operands: tuple[Any, ...], results: tuple[torch.Tensor, ...], cost: float, suffix: str
    ) -> None:
        outputs = tuple(Ref.of(result) for result in results if isinstance(result, FakeTensor))
        entry = Entry(run, Operands.of(operands, {}), outputs, frozenset(), cost, f"aten::{self._name}{suffix}")
        self._mode.tape.record(entry)


class _OneOperation(torch.autograd.Function):
    """A call as autograd sees it, with the limits that cuDNN's has: no second derivative, none in evaluation mode."""

    @staticmethod
    def forward(ctx: Any, layers: _Layers, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        sizes = None if call.batch_sizes is None else call.batch_sizes.clone()
        results, ctx.run = layers.forward(replace(call, tensors=tensors, batch_sizes=sizes))
        ctx.layers, ctx.train, ctx.cost = layers, call.train, replace(call, tensors=tensors).cost
        ctx.save_for_backward(*tensors)
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if not ctx.train:
            library = "miopen" if torch.version.hip else "cudnn"
            raise RuntimeError(f"{library} RNN backward can only be called in training mode")
        needed = ctx.needs_input_grad[2:]
        wanted = [index for index, needs in enumerate(needed) if needs]
        found = iter(ctx.layers.backward(ctx.run, ctx.cost, ctx.saved_tensors, wanted, upstream))
        return (None, None, *(next(found) if needs else None for needs in needed))


def _in_half(tensor: torch.Tensor) -> torch.Tensor:
    """What autocast makes of an operand of cuDNN's layers: float16, whatever type it is set to for other operators."""
    eligible = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.half() if eligible else tensor


@contextlib.contextmanager
def _without_cudnn() -> Iterator[None]:
    enabled = torch._C._get_cudnn_enabled()
    torch._C._set_cudnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_cudnn_enabled(enabled)
