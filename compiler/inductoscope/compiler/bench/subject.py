"""What is measured: how to make the program, how to compile it, how to make its inputs.

Must not know how time is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Program = Callable[..., object]
Inputs = tuple[tuple[object, ...], dict[str, object]]

_SEED = 0


@dataclass(frozen=True)
class Subject:
    """A program that can be made, compiled and called.

    `make_eager` returns a fresh instance each time (a new module with the same weights: it is called under the same
    seed), so that state which one side changes does not reach the other.  `compile` is the user's own way to compile
    such an instance.  `make_inputs` returns fresh positional and keyword arguments on the device that is measured.
    """

    make_eager: Callable[[], Program]
    compile: Callable[[Program], Program]
    make_inputs: Callable[[], Inputs]


class Call:
    """A program bound to inputs of its own, callable without arguments."""

    def __init__(self, program: Program, inputs: Inputs) -> None:
        self.program = program
        self.inputs = inputs

    def __call__(self) -> object:
        """One call; raises what the program raises."""
        args, kwargs = self.inputs
        return self.program(*args, **kwargs)


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
    return Call(seeded(subject.make_eager), seeded(subject.make_inputs))


def compiled_call(subject: Subject) -> Call:
    """A fresh program, wrapped for compilation, with fresh inputs.  Nothing is compiled before it is called."""
    return Call(subject.compile(seeded(subject.make_eager)), seeded(subject.make_inputs))
