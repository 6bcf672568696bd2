"""Where the tensors of a run live: on the CPU, on a real GPU, or on a simulated one.

Knows how things get there; not which things there are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import torch

from inductoscope.compiler.compat import compiled
from inductoscope.compiler.compat.compiled import Arguments
from inductoscope.compiler.conventions import Conventions
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.compiler.inputs import CallInputs, GivenCalls, Source
from inductoscope.compiler.resolve import Program
from inductoscope.protocol.devices import Device, DeviceChoice, DeviceKind, UnknownDeviceError, parse
from inductoscope.protocol.messages import FailureKind, Target
from inductoscope.protocol.report import DeviceSync, Place

_T = TypeVar("_T")
_Leaf = TypeVar("_Leaf", torch.Tensor, torch.nn.Module)

_STAYS_ON_CPU = (
    "exercise() works with modules of the file on the CPU, so what it runs is compiled for the CPU. "
    'Let it put them on the GPU (device="cuda") to see the GPU\'s kernels.'
)


class SimulationNote(Protocol):
    """A limit of what a simulated device shows."""

    @property
    def text(self) -> str:
        """A sentence."""


class Taken(Protocol):
    """How many tensors were made on the device instead of the CPU."""

    @property
    def taken(self) -> int:
        """The count so far."""


class Simulation(Protocol):
    """What a placement needs of the simulated device."""

    def move(self, obj: Any) -> Any:
        """The object, tensor or module, on the device."""

    def taking_large_tensors(self) -> contextlib.AbstractContextManager[Taken]:
        """For a block, large tensors of the CPU are made on the device."""

    def syncs(self) -> tuple[DeviceSync, ...]:
        """Where the host looked at device values."""

    def notes(self) -> tuple[SimulationNote, ...]:
        """What limits the claim."""


@dataclass(frozen=True)
class Placement:
    """Where things go; `simulation` is there for a simulated device only."""

    choice: DeviceChoice
    simulation: Simulation | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether everything stays where it is."""
        return self.choice.kind is DeviceKind.CPU

    @property
    def simulated(self) -> Device | None:
        """The simulated GPU, if it is one."""
        return self.choice.device

    def move(self, leaf: _Leaf) -> _Leaf:
        """A tensor or a module on the device; a module moves in place."""
        return leaf.to("cuda") if self.simulation is None else self.simulation.move(leaf)

    def made(self, make: Callable[[], _T], conventions: Conventions) -> _T:
        """What `make` makes for the device, without the memory for large tensors where the device is simulated.

        A program that wants data of those tensors on the CPU gets them: `make` is called again, with the random numbers
        that it had the first time.
        """
        if self.simulation is None or conventions.keep_on_cpu:
            return make()
        seed = torch.get_rng_state()
        with self.simulation.taking_large_tensors() as tensors:
            try:
                return make()
            except RunFailedError:
                if not tensors.taken:
                    raise
        torch.set_rng_state(seed)
        return make()


@dataclass(frozen=True)
class Placed:
    """A program and its calls on the device; `on_call` brings arguments there that the program makes itself.

    `note` says what of the program is not on the device after all.
    """

    program: Program
    source: Source
    on_call: Callable[[tuple[Any, ...], dict[str, Any]], Arguments]
    note: str | None = None


def place(program: Program, source: Source, conventions: Conventions, placement: Placement) -> Placed:
    """Put a program and its inputs on the device.

    A program that is made for a GPU puts the tensors that it makes itself where it wants them.  Of any other program
    `exercise(fn)` knows the CPU only: its arguments are moved at each call, unless the function works on modules of the
    file, which `exercise` may use too; then everything stays on the CPU.
    """
    if placement.is_cpu:
        return Placed(program, source, _as_they_are)
    modules = _modules_of(program)
    to_device = _Mover(placement, conventions.keep_on_cpu)
    if isinstance(source, GivenCalls):
        calls = tuple(CallInputs(*to_device(call.args, call.kwargs)) for call in source.calls)
        return Placed(_moved(program, modules, placement), replace(source, calls=calls), _as_they_are)
    if conventions.requires == "cuda":
        return Placed(_moved(program, modules, placement), source, _as_they_are)
    if modules and not isinstance(program.obj, torch.nn.Module):
        return Placed(program, source, _as_they_are, _STAYS_ON_CPU)
    return Placed(_moved(program, modules, placement), source, to_device)


class _Mover:
    """Moves arguments, inside lists, tuples, dictionaries and dataclasses too; a module or dataclass moves in place.

    What is one tensor stays one tensor, in a call and from call to call, as long as its values stay what they are.
    """

    def __init__(self, placement: Placement, keep_on_cpu: frozenset[int]) -> None:
        self._placement = placement
        self._keep_on_cpu = keep_on_cpu
        # By id: the tensor itself, so that the id stays its own, its version when it was moved, and what it became.
        self._moved: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments on the device, except for those of the indices to keep."""
        values = [
            value if index in self._keep_on_cpu else self._move(value)
            for index, value in enumerate((*args, *kwargs.values()))
        ]
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))

    def _move(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            return self._move_tensor(obj)
        if isinstance(obj, torch.nn.Module):
            return self._placement.move(obj)
        if type(obj) is dict:
            return {key: self._move(value) for key, value in obj.items()}
        if isinstance(obj, tuple) and hasattr(obj, "_fields"):
            return type(obj)(*map(self._move, obj))
        if type(obj) in (list, tuple):
            return type(obj)(map(self._move, obj))
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            for name in (field.name for field in dataclasses.fields(obj) if hasattr(obj, field.name)):
                object.__setattr__(obj, name, self._move(getattr(obj, name)))  # frozen ones too
        return obj

    def _move_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        version = 0 if tensor.is_inference() else tensor._version
        known = self._moved.get(id(tensor))
        if known is not None and known[1] == version:
            return known[2]
        moved = self._placement.move(tensor)
        if moved is not tensor:
            vars(moved).update(vars(tensor))  # marks such as those of mark_dynamic stand there
        self._moved[id(tensor)] = (tensor, version, moved)
        return moved


def _as_they_are(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    return args, kwargs


def _moved(program: Program, modules: Sequence[torch.nn.Module], placement: Placement) -> Program:
    """The program after its modules moved, which they do in place."""
    for module in modules:
        placement.move(module)
    return program


def _modules_of(program: Program) -> list[torch.nn.Module]:
    """The module that is called, the one that a method is bound to, or those that a function names."""
    if isinstance(program.obj, torch.nn.Module):
        return [program.obj]
    owner = getattr(program.obj, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return [owner]
    function = compiled.original(program.obj)
    if not isinstance(function, types.FunctionType):
        return []
    closed = inspect.getclosurevars(function)
    return [value for value in (*closed.globals.values(), *closed.nonlocals.values()) if _is_module(value)]


def _is_module(value: object) -> bool:
    return isinstance(value, torch.nn.Module)


def prepare(device: str, is_user: IsUser) -> Placement:
    """Get the device of a run ready, before the program is imported.  Raises `RunFailedError` when there is none."""
    try:
        choice = parse(device)
    except UnknownDeviceError as error:
        raise RunFailedError(failed(FailureKind.DEVICE, str(error), None)) from None
    if choice.device is not None:
        return Placement(choice, _simulate(choice.device, is_user))
    if choice.kind is DeviceKind.CUDA and not torch.cuda.is_available():
        message = (
            f"There is no GPU that torch {torch.__version__} can use in this interpreter. "
            "Look at the program on a simulated one: --device sim:H200."
        )
        raise RunFailedError(failed(FailureKind.DEVICE, message, None))
    return Placement(choice)


def check_required(conventions: Conventions, placement: Placement, target: Target) -> None:
    """Raise `RunFailedError` when the file asks for a GPU and the run is for the CPU."""
    if conventions.requires == "cuda" and placement.is_cpu:
        message = 'This file needs a GPU (REQUIRES = "cuda"): use --device sim:H200, or cuda where there is one.'
        raise RunFailedError(failed(FailureKind.DEVICE, message, Place(target.file, target.line)))


def _simulate(device: Device, is_user: IsUser) -> Simulation:
    from inductoscope.compiler import simgpu

    try:
        return simgpu.simulate(device, is_user)
    except Exception as error:
        raise RunFailedError(failed(FailureKind.DEVICE, str(error), None, error)) from error
