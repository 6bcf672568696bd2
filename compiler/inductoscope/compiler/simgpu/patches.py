"""Where torch would touch the card behind the dispatcher's back: the places that are turned to the simulation.

Each function is one reason.  Nothing here runs before `simulate()`; nothing changes what happens to CPU tensors.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map, tree_unflatten

from inductoscope.compiler.simgpu import recurrent, standins
from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patches

aten = torch.ops.aten


def install(mode: SimulatedDeviceMode, patches: Patches) -> torch.library.Library:
    """Apply all of them.  The library must stay alive: its registrations go with it."""
    _no_device_initialisation(patches)
    _shapes_without_a_card(patches)
    _modes_that_stay_on(mode, patches)
    _backward_in_this_thread(patches)
    recurrent.install(mode, patches)
    _parameters(mode, patches)
    _host_memory(patches)
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda"): made on the CPU, then moved
    library = torch.library.Library("aten", "IMPL")
    _stray_factories(mode, library)
    _composite_kernels(library)
    return library


def _no_device_initialisation(patches: Patches) -> None:
    why = "allocates on the card to create its context"
    patches.replace(fake_tensor, "init_gpu_context", lambda _: None, why=why)
    patches.replace(fake_tensor.FakeTensorMode, "avoid_device_init", property(lambda _: True), why=why)


def _shapes_without_a_card(patches: Patches) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def fallback(fake_mode: Any, func: Any, flat_args: Any, spec: Any, reason: Exception) -> Any:
            fakes = [arg for arg in flat_args if isinstance(arg, FakeTensor)]
            if not any(fake.fake_device.type == "cuda" for fake in fakes):
                return original(fake_mode, func, flat_args, spec, reason)
            return _run_on_zeros(fake_mode, func, flat_args, spec, reason)

        return fallback

    why = "operators without a shape function are run on zeros on the card to learn the shape; here on the CPU"
    patches.wrap(fake_tensor, "run_fallback_kernel", make, why=why)


def _run_on_zeros(fake_mode: Any, func: Any, flat_args: Any, spec: Any, reason: Exception) -> Any:
    def real(arg: Any) -> Any:
        if isinstance(arg, FakeTensor):
            return torch.zeros(arg.shape, dtype=arg.dtype, device="cpu")
        return torch.device("cpu") if isinstance(arg, torch.device) else arg

    def fake(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        layout = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        return FakeTensor(fake_mode, layout, torch.device("cuda", 0))

    with torch._C._DisableTorchDispatch(), torch.no_grad():
        args, kwargs = tree_unflatten([real(arg) for arg in flat_args], spec)
        try:
            result = standins.runnable(func)(*args, **kwargs)
            return tree_map(fake, result)
        except Exception:  # neither shape function nor CPU kernel, or a result without strides
            raise reason from None


def _modes_that_stay_on(mode: SimulatedDeviceMode, patches: Patches) -> None:
    import torch._dynamo.convert_frame
    import torch.utils._python_dispatch as dispatch

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def all_modes_but_ours() -> Iterator[Any]:
            with original() as off, mode:
                yield off

        return all_modes_but_ours

    why = "constant folding, and Dynamo's optimiser code, run real device operations with every mode off"
    patches.wrap(dispatch, "_disable_current_modes", make, why=why)
    stays_on = dispatch._disable_current_modes
    patches.replace(torch._dynamo.convert_frame, "_disable_current_modes", stays_on, why=why)


def _backward_in_this_thread(patches: Patches) -> None:
    from torch.autograd import graph

    original = graph._engine_run_backward

    def single_threaded(*args: Any, **kwargs: Any) -> Any:
        # A setting of the thread, which `inference_mode(False)` turns on again.
        with torch.autograd.set_multithreading_enabled(False):
            return original(*args, **kwargs)

    why = "the engine has no thread for the device, and operations in another thread would miss the mode"
    patches.define(graph, "_engine_run_backward", single_threaded, why=why)


def _parameters(mode: SimulatedDeviceMode, patches: Patches) -> None:
    from torch._dynamo.variables import builder

    a_parameter = torch.nn.Parameter(torch.empty(0), requires_grad=False)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def has_static_shape(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            is_ours = mode.owns(tensor) and isinstance(tensor, torch.nn.Parameter)
            return original(a_parameter if is_ours else tensor, *args, **kwargs)

        return has_static_shape

    why = "sizes of parameters stay static; Dynamo knows one by its class, which a device parameter does not have"
    patches.wrap(builder, "tensor_always_has_static_shape", make, why=why)


def _host_memory(patches: Patches) -> None:
    def pin(tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        return tensor.clone()

    why = "locks pages for the driver, also in threads without the mode (data loaders)"
    patches.replace(torch.Tensor, "pin_memory", pin, why=why)


def _stray_factories(mode: SimulatedDeviceMode, library: torch.library.Library) -> None:
    """A device tensor made with every mode off (constants in make_fx) becomes a fake one all the same."""
    for name, overload in (
        ("empty.memory_format", aten.empty.memory_format),
        ("empty_strided", aten.empty_strided.default),
    ):

        def stray(*args: Any, _overload: Any = overload, **kwargs: Any) -> Any:
            with mode:
                return _overload(*args, **kwargs)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a CUDA build has a kernel there, which must not run
            library.impl(name, stray, "CUDA", allow_override=True)


def _composite_kernels(library: torch.library.Library) -> None:
    """The three operators that have both a CUDA kernel and a composite form (found by comparing dispatch tables).

    A build without CUDA has only the composite form, which would be traced in the kernel's place.
    """

    def never_run(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("kernels of the simulated GPU do not run")

    for name in ("silu_backward", "mish_backward", "_fused_rms_norm"):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):
            library.impl(name, never_run, "CUDA")
