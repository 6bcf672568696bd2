"""Three pointers inside libtorch, for which Python has no hook.

1. The CUDAHooks object gets a copy of its vtable in which some slots return constants.  Autograd's engine needs
   `getAccelerator() == CUDA`, and convolution asks whether cuDNN is compiled in when it picks a memory layout.
   The order of the slots is read from the headers that every torch wheel ships.
2. The CUDA entry of the device-guard registry points at an object all of whose methods return the pair (1, 0):
   DeviceType CUDA, device cuda:0, default stream, true, count 1, depending on who asks.  The engine asks it for
   streams, events and the device count.
3. `_fused_sdp_choice_stub` gets a CUDA function.  Scaled dot-product attention asks that stub from C++ which backend
   to use; no dispatcher key reaches it.

Checked with the wheels of torch 2.11 to 2.15, CUDA and CPU-only builds, on x86-64 Linux.  The arm64 machine code was
written from the manual and has never run.  This module knows neither Triton nor Inductor.
"""

from __future__ import annotations

import ctypes
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler.simgpu import constant_functions
from inductoscope.compiler.simgpu.constant_functions import ConstantFunctions
from inductoscope.compiler.simgpu.errors import SimulationUnavailableError
from inductoscope.protocol.devices import Vendor

# (query, key, value, mask or None, dropout_p, is_causal, enable_gqa) -> number of the backend
ChooseAttention = Callable[[Any, Any, Any, Any, float, bool, bool], int]

_log = logging.getLogger(__name__)

CUDNN_VERSION = 91900

# What the slots of at::CUDAHooksInterface answer; absent names are of other versions and skipped.
_CUDA_HOOKS: dict[str, int | float] = {
    "isBuilt": 1,
    "isAvailable": 1,
    "hasPrimaryContext": 1,
    "init": 0,
    "deviceCount": 1,
    "setCurrentDevice": 0,
    "getCurrentDevice": 0,
    "exchangeDevice": 0,
    "maybeExchangeDevice": 0,
    "isPinnedPtr": 0,
    "hasCUDA": 1,
    "hasCUDART": 1,
    "hasCuDNN": 1,
    "hasCuSOLVER": 1,
    "hasCuBLASLt": 1,
    "current_device": 0,
    "compiledWithCuDNN": 1,
    "supportsDilatedConvolutionWithCuDNN": 1,
    "supportsDepthwiseConvolutionWithCuDNN": 1,
    "supportsBFloat16ConvolutionWithCuDNNv8": 1,
    "supportsBFloat16RNNWithCuDNN": 1,
    "versionCuDNN": CUDNN_VERSION,
    "versionRuntimeCuDNN": CUDNN_VERSION,
    "batchnormMinEpsilonCuDNN": 1e-5,
    "getNumGPUs": 1,
    "deviceSynchronize": 0,
}
_HIP_HOOKS: dict[str, int | float] = {
    "hasROCM": 1,
    "compiledWithMIOpen": 1,
    "versionMIOpen": 30400,
    "compiledWithCuDNN": 0,
    "hasCuDNN": 0,
    "versionCuDNN": 0,
}
_CUDA_TYPE = 1  # c10::DeviceType::CUDA
_GUARD_SLOTS = 64  # more than DeviceGuardImplInterface has in any version


class Pointers:
    """The three pointers, found but not yet set.  Keep the object: what libtorch points at then is in it, for good.

    Raises SimulationUnavailableError where the platform or this build of torch does not allow it.
    """

    def __init__(self) -> None:
        self._functions = constant_functions.make()
        try:
            self._lib = _Libraries()
            self._guard_slots = _virtual_methods("c10/core/impl/DeviceGuardImplInterface.h")
            self._hook_slots = _hook_slots()
        except (OSError, AttributeError, ValueError) as error:
            raise SimulationUnavailableError(
                f"torch {torch.__version__} lacks something it needs ({error}); 2.11 to 2.15 are known to work."
            ) from error
        if "deviceCount" not in self._guard_slots or "isAvailable" not in self._hook_slots:
            raise SimulationUnavailableError(
                f"the headers of torch {torch.__version__} are laid out in an unknown way."
            )
        self._parts: list[Any] = []

    def install(self, choose_attention: ChooseAttention, hooks: dict[str, int | float]) -> None:
        """Set them; `hooks` is what the slots of CUDAHooks answer (`hooks_for`)."""
        self._parts += _install_guard(self._lib, self._functions, self._guard_slots)
        self._parts += _install_hooks(self._lib, self._functions, self._hook_slots, hooks)
        self._parts += _install_attention(self._lib, constant_functions.is_arm(), choose_attention)


def hooks_for(vendor: Vendor) -> dict[str, int | float]:
    """What CUDAHooks answers for a device of `vendor`."""
    return {**_CUDA_HOOKS, **_HIP_HOOKS} if vendor is Vendor.AMD else dict(_CUDA_HOOKS)


class _Libraries:
    """The exported symbols that are used; loading raises OSError, AttributeError or ValueError where one is absent."""

    def __init__(self) -> None:
        folder = Path(torch.__file__).parent / "lib"
        cpu = ctypes.CDLL(str(folder / "libtorch_cpu.so"))
        c10 = ctypes.CDLL(str(folder / "libc10.so"))
        python = ctypes.PyDLL(str(folder / "libtorch_python.so"))
        pair = ctypes.c_void_p * 2
        self.guard_registry = pair.in_dll(c10, "_ZN3c104impl26device_guard_impl_registryE")
        self.attention_stub = pair.in_dll(cpu, "_ZN2at6native22_fused_sdp_choice_stubE")  # CPU, CUDA, ...
        self.hooks = cpu._ZN2at6detail12getCUDAHooksEv
        self.hooks.restype = ctypes.c_void_p
        self.wrap = python._Z16THPVariable_WrapRKN2at10TensorBaseE
        self.wrap.restype, self.wrap.argtypes = ctypes.py_object, [ctypes.c_void_p]


def _virtual_methods(header: str) -> list[str]:
    """Names of the virtual methods in the order of the vtable, without destructors."""
    text = (Path(torch.__file__).parent / "include" / header).read_text()
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return [name for name in re.findall(r"\bvirtual\s+[^;{}()]*?(~?\w+)\s*\(", text) if not name.startswith("~")]


def _hook_slots() -> list[str]:
    base = _virtual_methods("ATen/detail/AcceleratorHooksInterface.h")
    return base + [name for name in _virtual_methods("ATen/detail/CUDAHooksInterface.h") if name not in base]


def _install_guard(lib: _Libraries, functions: ConstantFunctions, slots: list[str]) -> tuple[Any, ...]:
    table = (ctypes.c_void_p * _GUARD_SLOTS)(*[functions.returning(1)] * _GUARD_SLOTS)
    if "isStreamCapturing" in slots:  # 2.13 on: optimisers would think that a CUDA graph is being recorded
        table[slots.index("isStreamCapturing")] = functions.returning(0)
    guard = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
    # The engine starts a thread for each device at its first backward, and a process with such threads cannot fork and
    # run backward in the child.  So let the first backward see no device; `patches` keeps multithreading off in every
    # later one, so that the engine never looks for those threads.
    table[slots.index("deviceCount")] = functions.returning(0)
    lib.guard_registry[_CUDA_TYPE] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet = lambda: None  # would put a guard of its own, for 8 devices, into the registry
    with torch.enable_grad(), torch.inference_mode(False):
        torch.ones((), requires_grad=True).mul(2).backward()
    table[slots.index("deviceCount")] = functions.returning(1)
    return table, guard


def _install_hooks(
    lib: _Libraries, functions: ConstantFunctions, slots: list[str], answers: dict[str, int | float]
) -> tuple[Any, ...]:
    hooks = ctypes.cast(lib.hooks(), ctypes.POINTER(ctypes.c_void_p))
    before = 4  # offset to top, type info and two destructors stand before the other methods
    count = before + len(slots)
    table_type = ctypes.c_void_p * count
    first_method = 2 * ctypes.sizeof(ctypes.c_void_p)  # the object points behind offset and type info
    table = table_type(*table_type.from_address(hooks[0] - first_method))
    for name, answer in answers.items():
        if name in slots:
            table[before + slots.index(name)] = functions.returning(answer)
    hooks[0] = ctypes.addressof(table) + first_method
    return (table,)


def _install_attention(lib: _Libraries, is_arm: bool, choose: ChooseAttention) -> tuple[Any, ...]:
    # std::optional<double> by value: xmm and a flag on x86-64, two integer registers on arm64
    scale = [ctypes.c_int64, ctypes.c_int64] if is_arm else [ctypes.c_double, ctypes.c_bool]
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_double, ctypes.c_bool, *scale, ctypes.c_bool
    )

    def choice(q: int, k: int, v: int, mask: int, dropout: float, causal: bool, _s: Any, _has: Any, gqa: bool) -> int:
        pointer = ctypes.sizeof(ctypes.c_void_p)  # std::optional<Tensor> is the pointer, then a flag
        has_mask = bool(ctypes.c_uint8.from_address(mask + pointer).value)
        try:
            mask_tensor = lib.wrap(mask) if has_mask else None
            return choose(lib.wrap(q), lib.wrap(k), lib.wrap(v), mask_tensor, dropout, causal, gqa)
        except Exception:  # an exception must not cross C++; the plain implementation is always valid
            _log.exception("the attention backend could not be chosen")
            return 0

    function = prototype(choice)
    lib.attention_stub[1] = ctypes.cast(function, ctypes.c_void_p).value
    return (function,)
