"""Hand-written Triton kernels: launches on device tensors are recorded, and run only if somebody looks at the result.

Then Triton's own interpreter runs them on the CPU.  Of an autotuned kernel the first configuration counts: which one
wins is measured on a card.  Launches from inside a compiled graph come here too, when the graph is run eagerly.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves
from triton.runtime import autotuner, jit

from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patches
from inductoscope.compiler.simgpu.records import UserLaunch
from inductoscope.compiler.simgpu.tape import Entry, Operands, key_of
from inductoscope.protocol.report import Place

_OPERATIONS_PER_ELEMENT = 50.0  # the interpreter is that much slower than an operator's own kernel, roughly
_LAUNCH_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override", "warmup", "stream"})


def install(mode: SimulatedDeviceMode, patches: Patches) -> None:
    """Patch the three classes that a kernel can be launched through."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
            if any(mode.owns(leaf) for leaf in tree_leaves((args, kwargs))):
                return _launch(mode, _Launch.of(kernel, grid, args, kwargs))
            return original(kernel, *args, grid=grid, warmup=warmup, **kwargs)

        return run

    for cls in (jit.JITFunction, autotuner.Autotuner, autotuner.Heuristics):
        patches.wrap(cls, "run", make, why="the device does not run kernels; launches are recorded")


@dataclass(frozen=True)
class _Launch:
    """A launch with its wrappers undone: the function itself, all its arguments by name, the grid as numbers."""

    function: Any
    arguments: dict[str, Any]
    grid: tuple[int, ...]
    configs: int

    @staticmethod
    def of(kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Launch:
        arguments = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
        configs = 1
        while not isinstance(kernel, jit.JITFunction):
            if isinstance(kernel, autotuner.Autotuner):
                configs = len(kernel.configs)
                first = kernel.configs[0]
                arguments.update(first.kwargs)
                if first.pre_hook is not None:
                    first.pre_hook({**arguments, **first.all_kwargs()})
            else:
                for name, heuristic in kernel.values.items():
                    arguments[name] = heuristic(arguments)
            kernel = kernel.fn
        numbers = grid(arguments) if callable(grid) else grid
        return _Launch(kernel, arguments, tuple(int(number) for number in numbers), configs)


def _launch(mode: SimulatedDeviceMode, launch: _Launch) -> None:
    function = launch.function.fn
    mode.journal.launch(
        UserLaunch(
            function.__name__,
            mode.journal.place(),
            launch.grid,
            _source(function),
            Place(function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__),
            launch.configs,
        )
    )
    arguments = {name: value for name, value in launch.arguments.items() if name not in _LAUNCH_OPTIONS}
    touched = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, FakeTensor)]
    mode.tape.record(
        Entry(
            lambda **on_cpu: _interpret(function, launch.grid, on_cpu),
            Operands.of((), arguments),
            (),
            frozenset(key_of(tensor) for tensor in touched),  # it may write to any of them
            sum(tensor.numel() for tensor in touched) * _OPERATIONS_PER_ELEMENT,
            f"the Triton kernel {function.__name__}",
        )
    )


def _interpret(function: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> None:
    from triton.runtime.interpreter import InterpretedFunction

    def call_helper(helper: Any, *args: Any, **kwargs: Any) -> Any:
        return InterpretedFunction(helper.fn)(*args, **kwargs)

    # A kernel calls other compiled functions, its own helpers and those of Triton's library: interpret them too.
    refuses_to_be_called = jit.JITFunction.__call__
    jit.JITFunction.__call__ = call_helper
    try:
        # The interpreter wraps tensors in classes of its own; older versions have no switch and need none.
        with getattr(torch._C, "_EnableTorchFunction", contextlib.nullcontext)():
            InterpretedFunction(function)[grid](**arguments)
    finally:
        jit.JITFunction.__call__ = refuses_to_be_called


def _source(function: Any) -> str | None:
    try:
        return inspect.getsource(function)
    except OSError:  # typed into an interpreter
        return None
