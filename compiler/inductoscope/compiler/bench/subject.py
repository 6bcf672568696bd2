"""What is measured: how to make the program, how to compile it, how to make its inputs, and what a call of it is.

Must not know how time is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.bench.numerics import tensors
from inductoscope.compiler.bench.refusal import RefusedError
from inductoscope.protocol.bench import Passes

Program = Callable[..., object]
Inputs = tuple[tuple[object, ...], dict[str, object]]

_SEED = 0


@dataclass(frozen=True)
class Subject:
    """A program that can be made, compiled and called.

    `make_eager` returns a fresh instance each time (a new module with the same weights: it is called under the same
    seed), so that state which one side changes does not reach the other.  `compile` is the user's own way to compile
    such an instance.  `make_inputs` returns fresh positional and keyword arguments on the device that is measured.
    `passes` says whether a call includes the backward pass.
    """

    make_eager: Callable[[], Program]
    compile: Callable[[Program], Program]
    make_inputs: Callable[[], Inputs]
    passes: Passes = Passes.FORWARD


class Call:
    """A program bound to inputs of its own, callable without arguments."""

    def __init__(self, program: Program, inputs: Inputs, passes: Passes = Passes.FORWARD, owner: object = None) -> None:
        """`owner` is the module whose parameters get gradients, where that is not `program` itself."""
        self.program = program
        self.inputs = inputs
        self._passes = passes
        owner = program if owner is None else owner
        self._parameters = dict(owner.named_parameters()) if isinstance(owner, torch.nn.Module) else {}
        self._ones: dict[tuple[object, ...], torch.Tensor] = {}

    def __call__(self) -> object:
        """One call; raises what the program raises."""
        args, kwargs = self.inputs
        if self._passes is Passes.FORWARD:
            return self.program(*args, **kwargs)
        for leaf in self._leaves():
            leaf.grad = None
        result = self.program(*args, **kwargs)
        self._backward(result)
        return result

    def everything(self, result: object) -> dict[str, object]:
        """All that a call gave or may have written to, by what people call it."""
        args, kwargs = self.inputs
        arguments: dict[object, object] = dict(enumerate(args))
        arguments.update(kwargs)
        found: dict[str, object] = {"result": result, "argument": arguments}
        if self._passes is Passes.BOTH:
            gradients = {name: parameter.grad for name, parameter in self._parameters.items()}
            found["gradient"] = {name: gradient for name, gradient in gradients.items() if gradient is not None}
        return found

    def _leaves(self) -> list[torch.Tensor]:
        inputs = (tensor for tensor in tensors(self.inputs) if tensor.requires_grad and tensor.is_leaf)
        return [*self._parameters.values(), *inputs]

    def _backward(self, result: object) -> None:
        """The backward pass of the sum of everything that the program returned and that has a gradient."""
        ends = [tensor for tensor in tensors(result) if tensor.requires_grad]
        if not ends:
            raise RefusedError(
                "There is no backward pass to measure: nothing that the program returns requires a gradient. "
                "Measure the forward pass, or let a parameter or an input require one."
            )
        torch.autograd.backward(ends, [self._ones_like(end) for end in ends])

    def _ones_like(self, end: torch.Tensor) -> torch.Tensor:
        key = (end.shape, end.dtype, end.device)
        if key not in self._ones:
            self._ones[key] = torch.ones_like(end)
        return self._ones[key]


def seeded(make: Callable[[], Any]) -> Any:
    """What `make` returns when every global random generator starts from the same seed."""
    reseed()
    return make()


def reseed() -> None:
    """Start torch's and Python's global random generators from the same seed."""
    torch.manual_seed(_SEED)
    random.seed(_SEED)


def eager_call(subject: Subject) -> Call:
    """A fresh eager program with fresh inputs."""
    return Call(seeded(subject.make_eager), seeded(subject.make_inputs), subject.passes)


def compiled_call(subject: Subject) -> Call:
    """A fresh program, wrapped for compilation, with fresh inputs.  Nothing is compiled before it is called."""
    program = seeded(subject.make_eager)
    return Call(subject.compile(program), seeded(subject.make_inputs), subject.passes, owner=program)
