"""Puts the parts together: one simulated device a process, from `simulate()` on."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_map

from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat.own_frames import hide_frames_of
from inductoscope.compiler.predict.eager import EagerRun
from inductoscope.compiler.simgpu import (
    bodies,
    constants,
    cuda_api,
    decisions,
    native,
    patches,
    records,
    sdpa,
    selftest,
)
from inductoscope.compiler.simgpu.eager_ops import Rerun
from inductoscope.compiler.simgpu.errors import SimulationUnavailableError
from inductoscope.compiler.simgpu.graphs import RECOMPUTING, EagerGraph
from inductoscope.compiler.simgpu.large import LargeTensors
from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patch, Patches
from inductoscope.compiler.simgpu.records import Heard, IsUser, Journal, Note, Topic, UserLaunch
from inductoscope.compiler.simgpu.tape import Tape
from inductoscope.compiler.simgpu.target import TargetDevice
from inductoscope.protocol.devices import Device
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Decision, DeviceSync, Place

_T = TypeVar("_T")


class Simulation:
    """The simulated device of this process, and what there is to tell about it."""

    def __init__(self, target: TargetDevice, journal: Journal, mode: SimulatedDeviceMode, applied: Patches) -> None:
        self._target, self._journal, self._mode, self._patches = target, journal, mode, applied
        self._keep: tuple[Any, ...] = ()
        self.has_kernels = True
        """Whether Inductor can generate kernels: it cannot without Triton."""

    @property
    def device(self) -> Device:
        """The device in force."""
        return self._target.device

    @property
    def replay(self) -> Replay:
        """What torch decided on the card, as far as that was recorded."""
        return self._target.replay

    def replaying(self, recording: Recording) -> None:
        """From now on, decide as was recorded on the card; a note says so where that cannot be done."""
        self._target.replay = Replay(recording, torch.__version__)
        if self.replay.problem is not None:
            self._journal.note(Topic.RECORDING, self.replay.problem)

    def compiling(self) -> contextlib.AbstractContextManager[None]:
        """Around a call of Inductor: the device is on, and Inductor starts no workers and replays no cached result."""
        return _compiling(self._mode)

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """The device mode is off for the block: for the compiler's own arithmetic, such as assembling."""
        with torch._C._DisableTorchDispatch():
            yield

    def taking_large_tensors(self) -> contextlib.AbstractContextManager[LargeTensors]:
        """Around the making of a program's inputs: tensors that are large on the CPU are on the device at once.

        What uses them goes to the device too.  A program that needs their data as they are made fails in there.
        """
        return self._mode.taking_large_tensors()

    def eager(self, graph: torch.fx.GraphModule) -> EagerGraph:
        """A callable that runs a captured graph op by op on the device.

        Call this *before* the compiler gets the graph, which it changes.  Looks at values are put on the graph
        nodes' own lines.
        """
        return EagerGraph(graph, self._journal.at)

    def eager_run(self, graph: torch.fx.GraphModule, args: Sequence[Any]) -> EagerRun:
        """What a captured graph would dispatch without compilation on tensors like `args`, forward and backward.

        It is run on tensors of its own that nobody can look into, so that nothing of it is remembered.
        """
        runner = EagerGraph(graph, self._journal.at, RECOMPUTING)
        return Rerun(graph.graph, runner, self._mode.fake).on(args)

    def move(self, obj: _T) -> _T:
        """`obj` on the device: a tensor, a module (moved in place), or containers of these, nested.

        A leaf that requires a gradient stays one.  Anything else is returned as it is.
        """
        moved: _T = tree_map(self._move_leaf, obj)
        return moved

    def _move_leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.nn.Module):
            return leaf.cuda()
        if isinstance(leaf, torch.Tensor) and not self._mode.owns(leaf):
            return leaf.detach().cuda().requires_grad_(leaf.requires_grad) if leaf.is_leaf else leaf.cuda()
        return leaf

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A device tensor on the CPU, connected to it; None where its values cannot be told.

        No look of the program: for callers that keep its results on the CPU.
        """
        return self._mode.bring_back(tensor)

    def syncs(self) -> tuple[DeviceSync, ...]:
        """Every place where the program looked at a device value."""
        return self._journal.syncs

    def notes(self) -> tuple[Note, ...]:
        """What limits the claim: choices that only a card can make, and what the self-test found off."""
        return self._journal.notes

    def hearing(self) -> contextlib.AbstractContextManager[Heard]:
        """Around something of which notes and decisions are wanted by themselves, also those that were made before."""
        return self._journal.hearing()

    def note_again(self, topic: str, text: str, place: Place | None, subject: str | None) -> None:
        """Take in a note of an earlier run; `topic` is the value of a `Topic`."""
        self._journal.note(Topic(topic), text, place, subject)

    def decide_again(self, decision: Decision) -> None:
        """Take in a decision of an earlier run."""
        self._journal.decide(decision)

    def sentences(self) -> list[str]:
        """The notes for people: what holds of several things is said once."""
        return records.sentences(self._journal.notes)

    def decisions(self) -> tuple[Decision, ...]:
        """What the card would have decided by timing, and what is shown in its place."""
        return self._journal.decisions

    def launches(self) -> tuple[UserLaunch, ...]:
        """Hand-written Triton kernels that were launched on device tensors."""
        return self._journal.launches

    def patches(self) -> tuple[Patch, ...]:
        """What was replaced in torch and Triton, with reasons."""
        return tuple(self._patches.applied)

    def clear(self) -> None:
        """Forget records and values of what ran so far; device tensors that are still alive lose their values."""
        self._journal.clear()
        self._mode.tape.clear()

    def retarget(self, device: Device) -> None:
        """Switch to another device of the same vendor, in a child forked from a warm process.

        Raises SimulationUnavailableError for the other vendor: torch was patched for this one.
        """
        if device.vendor is not self.device.vendor:
            raise SimulationUnavailableError(
                f"this process already simulates {self.device.name}, and {device.name} needs a process of its own."
            )
        self._target.change(device)
        _forget_the_device()
        torch._dynamo.reset()

    def for_user(self, is_user: IsUser) -> None:
        """From now on, places are those that `is_user` accepts."""
        self._journal.is_user = is_user


_active: Simulation | None = None


def active() -> Simulation | None:
    """The simulation of this process, if `simulate` was called."""
    return _active


def simulate(device: Device, is_user: IsUser | None = None) -> Simulation:
    """Make `device` the only CUDA device of this process, for good, for the calling thread's programs.

    Call it before the program touches CUDA.  `is_user` tells user files from libraries; by default everything outside
    torch, this package, site-packages and the standard library.  A second call with the same device returns the same
    simulation.  Raises SimulationUnavailableError with a sentence.
    """
    global _active
    if _active is not None:
        if device != _active.device:
            raise SimulationUnavailableError(f"this process already simulates {_active.device.name}.")
        if is_user is not None:
            _active.for_user(is_user)
        return _active
    _active = _build(device, is_user or _is_user_by_default())
    return _active


def _build(device: Device, is_user: IsUser) -> Simulation:
    without_triton = _without_triton()
    pointers = native.Pointers()
    _import_inductor()
    target, journal, applied = TargetDevice(device), Journal(is_user), Patches()

    def choose(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, grouped: bool) -> int:
        return sdpa.choose(target.device, sdpa.Call(q, k, v, mask, dropout, causal, grouped))

    pointers.install(choose, native.hooks_for(device.vendor))
    cuda_api.install(target, applied)
    mode = SimulatedDeviceMode(Tape(), journal)
    library = patches.install(mode, applied)
    decisions.install(target, journal, applied)
    if without_triton is None:
        from inductoscope.compiler.simgpu import triton_driver, user_kernels  # they need Triton

        triton_driver.install(target)
        user_kernels.install(mode, applied)
    bodies.install(mode, applied)
    hide_frames_of(__package__)
    simulation = Simulation(target, journal, mode, applied)
    simulation._keep = (pointers, library)
    _forget_the_device()
    mode.__enter__()
    off = list(selftest.run(device, applied.missing))
    simulation.clear()  # the self-test's own looks are nobody's
    for text in off:
        journal.note(Topic.SELF_TEST, text)
    if without_triton is not None:
        simulation.has_kernels = False
        journal.note(Topic.TRITON, without_triton)
    return simulation


def _without_triton() -> str | None:
    """Why there are no kernels to show, as a sentence; None where Triton is there."""
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return (
            f"Triton is not installed in this environment ({error}), so graphs are shown, but no kernels; "
            "`pip install triton` adds it, no GPU is needed."
        )
    return None


def _import_inductor() -> None:
    import torch._inductor.config as inductor

    with inductor.patch(compile_threads=1):  # importing it starts a pool of compiler processes otherwise
        import torch._dynamo
        import torch._inductor.async_compile
        import torch._inductor.compile_fx  # noqa: F401


@contextlib.contextmanager
def _compiling(mode: SimulatedDeviceMode) -> Iterator[None]:
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    # A cache hit would hand back an object that wants to run.
    settings = {"compile_threads": 1, "fx_graph_cache": False}
    # The compiled forward never runs, so nothing later would ask for the backward.
    joint = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
    patched = inductor.patch(settings), functorch.patch(joint)
    with patched[0], patched[1], no_static_launcher(), constants.on_the_device(), mode:
        yield


@contextlib.contextmanager
def no_static_launcher() -> Iterator[None]:
    """Torch's own launcher of Triton kernels is off: it loads the machine code onto the card as soon as it is there."""
    import torch._inductor.config as inductor

    names = ("use_static_cuda_launcher", "use_static_triton_launcher")  # the first before torch 2.13, then both
    with inductor.patch({name: False for name in names if hasattr(inductor, name)}):
        yield


def _forget_the_device() -> None:
    """Drop what torch and Triton remembered about the device, but not the pattern tables of a warm process."""
    from torch._dynamo import device_interface

    device_interface.caching_worker_device_properties.pop("cuda", None)
    device_interface.caching_worker_current_devices.pop("cuda", None)
    for module_name, names in _REMEMBERED.items():
        for name in names:
            found: Any = sys.modules.get(module_name)
            for part in name.split("."):
                found = getattr(found, part, None)
            if hasattr(found, "cache_clear"):
                found.cache_clear()


_REMEMBERED = {
    "torch._inductor.utils": (
        "get_gpu_type",
        "get_gpu_dram_gbps",
        "get_device_tflops",
        "is_big_gpu",
        "get_num_sms",
        "get_max_num_sms",
        "get_gpu_shared_memory",
        "has_triton",
        "get_tma_workspace_arg",
        "can_use_tma",
    ),
    "torch._inductor.runtime.hints": ("DeviceProperties.create",),
    "torch._inductor.codecache": ("CacheBase.get_system",),
    "torch.utils._triton": (
        "has_triton",
        "triton_backend",
        "triton_hash_with_backend",
        "has_triton_tma",
        "has_triton_tma_device",
        "has_triton_stable_tma_api",
        "has_triton_experimental_host_tma",
        "has_datacenter_blackwell_tma_device",
    ),
    "torch._inductor.runtime.triton_helpers": ("get_backend_options",),
    "torch.cuda": ("_check_bf16_tensor_supported",),
}


def _is_user_by_default() -> Callable[[str], bool]:
    ours = Path(__file__).resolve().parents[1]
    library = tuple(
        str(path) for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(ours)} if path
    )

    def is_user(file: str) -> bool:
        packages = ("site-packages", "dist-packages")
        return not file.startswith(("<", *library)) and not any(name in Path(file).parts for name in packages)

    return is_user
