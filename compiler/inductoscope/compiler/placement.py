"""Where the tensors of a run live: on the CPU, on a real GPU, or on a simulated one.

Knows how things get there; not which things there are.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import torch

from inductoscope.compiler import left_behind
from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import compiled
from inductoscope.compiler.compat.compiled import Arguments
from inductoscope.compiler.conventions import Conventions
from inductoscope.compiler.conventions import read as read_conventions
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.compiler.inputs import CallInputs, GivenCalls, Source
from inductoscope.compiler.kernel_owners import Launch
from inductoscope.compiler.moving import Gradients, Traveller
from inductoscope.compiler.resolve import Program
from inductoscope.protocol.devices import Device, DeviceChoice, DeviceKind, UnknownDeviceError, parse
from inductoscope.protocol.messages import FailureKind, Target
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Decision, DeviceSync, Place

_T = TypeVar("_T")
_Leaf = TypeVar("_Leaf", torch.Tensor, torch.nn.Module)

_STAYS_ON_CPU = (
    "exercise() works with modules of the file on the CPU, so what it runs is compiled for the CPU. "
    'Let it put them on the GPU (device="cuda") to see the GPU\'s kernels.'
)


_MAY_WANT_DATA = (FailureKind.RUN, FailureKind.IMPORT, FailureKind.DEVICE)
"""Failures of the program's own code.  Others would be the same with all data there."""


class Taken(Protocol):
    """How many tensors were made on the device instead of the CPU."""

    @property
    def taken(self) -> int:
        """The count so far."""


class Simulation(Protocol):
    """What a placement needs of the simulated device."""

    has_kernels: bool

    def move(self, obj: Any) -> Any:
        """The object, tensor or module, on the device."""

    def taking_large_tensors(self) -> contextlib.AbstractContextManager[Taken]:
        """For a block, large tensors of the CPU are made on the device."""

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A tensor of the device on the CPU, if its values can be told."""

    def syncs(self) -> tuple[DeviceSync, ...]:
        """Where the host looked at device values."""

    def launches(self) -> tuple[Launch, ...]:
        """Hand-written kernels that the program launched."""

    def decisions(self) -> tuple[Decision, ...]:
        """What the card would have decided by timing."""

    def sentences(self) -> list[str]:
        """What limits the claim."""

    @property
    def replay(self) -> Replay:
        """What torch decided on the card, as far as that was recorded."""


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

    @property
    def has_kernels(self) -> bool:
        """Whether kernels can be generated for the device."""
        return self.simulation is None or self.simulation.has_kernels

    def move(self, leaf: _Leaf) -> _Leaf:
        """A tensor or a module on the device; a module moves in place."""
        return leaf.to("cuda") if self.simulation is None else self.simulation.move(leaf)

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A tensor of the device on the CPU; None where a simulated device cannot tell its values."""
        return tensor.to("cpu") if self.simulation is None else self.simulation.bring_back(tensor)

    def made(self, make: Callable[[], _T], conventions: Conventions) -> _T:
        """What `make` makes for the device, without the memory for large tensors where the device is simulated.

        A program that wants data of those tensors on the CPU gets them: `make` is called again, with the random numbers
        that it had the first time.
        """
        return make() if conventions.keep_on_cpu else self._without_memory(make, lambda _: True)

    def imported(self, attempt: Callable[[], types.ModuleType]) -> types.ModuleType:
        """The program's file, imported by `attempt` in the way of `made`, where all of it goes to the device later."""
        return self._without_memory(attempt, _all_moves)

    def _without_memory(self, make: Callable[[], _T], suits: Callable[[_T], bool]) -> _T:
        if self.simulation is None:
            return make()
        seed = torch.get_rng_state()
        with self.simulation.taking_large_tensors() as tensors:
            try:
                made = make()
                if not tensors.taken or suits(made):
                    return made
            except RunFailedError as error:
                if not tensors.taken or error.failure.kind not in _MAY_WANT_DATA:
                    raise
        torch.set_rng_state(seed)
        return make()


def _all_moves(module: types.ModuleType) -> bool:
    """Whether the tensors of a file may be on the device before the program says so: not if it treats both apart."""
    said = read_conventions(module)
    return said.requires is None and said.exercise is None and not said.keep_on_cpu


@dataclass(frozen=True)
class Placed:
    """A program and its calls on the device.

    `on_call` brings arguments there that the program makes itself, `on_return` brings back what it gets for them.
    `note` says what of the program is not on the device after all.
    """

    program: Program
    source: Source
    on_call: Callable[[tuple[Any, ...], dict[str, Any]], Arguments]
    on_return: Callable[[Any], Any]
    note: str | None = None


def place(program: Program, source: Source, conventions: Conventions, placement: Placement) -> Placed:
    """Put a program and its inputs on the device.

    A program that is made for a GPU puts the tensors that it makes itself where it wants them.  Of any other program
    `exercise(fn)` knows the CPU only: its arguments are moved at each call and come back with the results, unless the
    function works on modules of the file, which `exercise` may use too; then everything stays on the CPU.
    """
    if placement.is_cpu:
        return Placed(program, source, _as_they_are, _as_it_is)
    modules = _modules_of(program)
    if isinstance(source, GivenCalls):
        one_way = Traveller(placement, conventions.keep_on_cpu, Gradients.THERE)
        calls = tuple(CallInputs(*one_way.there(call.args, call.kwargs)) for call in source.calls)
        moved = _moved(program, modules, placement)
        note = _joined(left_behind.note(modules), _of_globals(program, modules, placement))
        return Placed(moved, replace(source, calls=calls), _as_they_are, _as_it_is, note)
    if conventions.requires == "cuda":
        return Placed(_moved(program, modules, placement), source, _as_they_are, _as_it_is)
    if modules and not isinstance(program.obj, torch.nn.Module):
        return Placed(program, source, _as_they_are, _as_it_is, _STAYS_ON_CPU)
    traveller = Traveller(placement, conventions.keep_on_cpu, Gradients.HERE)
    moved = _moved(program, modules, placement)
    return Placed(moved, source, traveller.there, traveller.back, left_behind.note(modules))


def _of_globals(program: Program, modules: Sequence[torch.nn.Module], placement: Placement) -> str | None:
    if placement.simulation is None:
        return None
    from inductoscope.compiler.simgpu.large import LARGE_BYTES

    parts = (type(part).forward for module in modules for part in module.modules())
    functions = {one for one in (compiled.original(program.obj), *parts) if isinstance(one, types.FunctionType)}
    return _joined(left_behind.note_of_globals(functions, LARGE_BYTES), left_behind.note_of_cpu_globals(functions))


def _joined(*sentences: str | None) -> str | None:
    return " ".join(sentence for sentence in sentences if sentence is not None) or None


def _as_they_are(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    return args, kwargs


def _as_it_is(result: Any) -> Any:
    return result


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


def prepare(device: str, is_user: IsUser, own: OwnDevice | None = None) -> Placement:
    """Get the device of a run ready, before the program is imported.

    `own` is the GPU that `device` names where somebody described it.  Raises `RunFailedError` when there is no such
    device.
    """
    try:
        choice = parse(device, (own.device,) if own is not None else ())
    except UnknownDeviceError as error:
        raise RunFailedError(failed(FailureKind.DEVICE, str(error), None)) from None
    if choice.device is not None:
        recording = own.recording if own is not None and own.device == choice.device else None
        return Placement(choice, _simulate(choice.device, is_user, recording))
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


def _simulate(device: Device, is_user: IsUser, recording: Recording | None) -> Simulation:
    from inductoscope.compiler import simgpu

    try:
        simulation = simgpu.simulate(device, is_user)
        if recording is not None:
            simulation.replaying(recording)
        return simulation
    except simgpu.SimulationUnavailableError as error:
        raise RunFailedError(failed(FailureKind.DEVICE, str(error), None, error)) from error
    except Exception as error:  # a part of torch that is not as in the versions that were tried
        unavailable = simgpu.SimulationUnavailableError(f"{type(error).__name__} in its making: {error}.")
        raise RunFailedError(failed(FailureKind.DEVICE, str(unavailable), None, error)) from error
