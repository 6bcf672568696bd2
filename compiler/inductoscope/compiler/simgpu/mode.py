"""The dispatch mode under which the user's program runs: device tensors are fake, looks at values are answered.

Outside the compiler, every operation on device tensors becomes a fake operation (shapes, strides, dtypes) and is
written on the tape.  Where the program looks at a value, which is where a real GPU would be waited for, the tape
computes it, or the program gets a guess and the journal says so.  Operations on CPU tensors pass untouched.  While
the compiler traces, the mode stands aside.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from inductoscope.compiler.simgpu import writing
from inductoscope.compiler.simgpu.graphs import plain_meaning
from inductoscope.compiler.simgpu.large import LargeTensors
from inductoscope.compiler.simgpu.looking import DEVICE, Looks, Waits
from inductoscope.compiler.simgpu.records import Journal
from inductoscope.compiler.simgpu.tape import Operands, Tape

aten = torch.ops.aten
_META = torch.device("meta")
_COMPILER_MODES = (
    torch._C._TorchDispatchModeKey.FAKE,
    torch._C._TorchDispatchModeKey.PROXY,
    torch._C._TorchDispatchModeKey.FUNCTIONAL,
)


class DeviceFakeMode(FakeTensorMode):
    """The fake mode of all device tensors; copying a tensor's attributes must not copy it."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        # Each result is noted there by the meta tensor inside of it, which nobody else has, so that nothing is ever
        # found; but `torch.utils.swap_tensors` refuses a tensor that has a weak reference to it.
        self.fake_tensor_converter.set_tensor_memo = _note_nothing

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceFakeMode:
        return self


class SimulatedDeviceMode(TorchDispatchMode):
    """See the module's text.  Pushed once, for the thread in which the user's program runs."""

    supports_higher_order_operators = True

    def __init__(self, tape: Tape, journal: Journal) -> None:
        super().__init__()
        self.tape, self.journal = tape, journal
        self.fake = DeviceFakeMode()
        self._looks = Looks(tape, journal, self.fake)
        self._large: LargeTensors | None = None

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A device tensor on the CPU, connected to it, untold; None where its values are not known."""
        if self.owns(tensor) and not self._looks.can_tell(tensor):
            return None
        with self._looks.of_nobody():
            return tensor.cpu()

    def values_to_save(self, tensor: FakeTensor) -> torch.Tensor:
        """A device tensor's values on the CPU, to be written at once: tensors that share a storage still do there."""
        zeros = torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
        saved: torch.Tensor = self._looks.look(tensor, "copy to CPU", lambda value: value, lambda: zeros)
        return saved

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Dynamo would otherwise skip every frame."""
        return True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Not one of torch's own."""
        return False

    def owns(self, value: object) -> bool:
        """Whether `value` is a tensor on the simulated device."""
        return isinstance(value, FakeTensor) and value.fake_mode is self.fake

    def is_in_charge(self) -> bool:
        """Whether operations of the calling thread come here now: not while the compiler traces, or the mode is off."""
        modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        return self in modes and not _compiler_traces()

    @contextlib.contextmanager
    def taking_large_tensors(self) -> Iterator[LargeTensors]:
        """For the block, large tensors of the CPU are made on the device; the looks in there are nobody's."""
        before = self._large
        self._large = taking = LargeTensors(DEVICE, self.owns, lambda tensor: self._from_cpu(tensor, {}, {}))
        try:
            with self._looks.of_nobody():
                yield taking
        finally:
            self._large = before

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if _compiler_traces():
            return func(*args, **kwargs)
        fakes = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        if any(fake.fake_mode is not self.fake for fake in fakes):
            return func(*args, **kwargs)  # the compiler's own tensors
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        if _is_composite(func):
            with self:  # only inference mode lets these come here whole; what they consist of comes one by one
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is torch.ops.prims.device_put.default:
            func, args, kwargs = aten._to_copy.default, args[:1], {"device": torch.device(args[1])}
        if self._large is not None:
            args, kwargs = self._large.redirected(func, args, kwargs)
        device = kwargs.get("device")
        if kwargs.get("pin_memory"):  # pages are locked for a driver; a copy from ordinary ones is as good
            kwargs = {**kwargs, "pin_memory": False}
        if not fakes and not _is_ours(device):
            return func(*args, **kwargs)
        if isinstance(device, torch.device) and device.type == "cuda" and device.index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return self._on_device(func, args, kwargs)

    def _on_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("device") == _META:
            args, kwargs = tree_map(_without_data, (args, kwargs))
            return func(*args, **kwargs)
        special = _SPECIAL.get(func)
        if special is not None:
            done, result = special(self, args, kwargs)
            if done:
                return result
        operands = writing.taken(func, args, kwargs)
        try:
            with self.fake:
                result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return self._looks.compute(func, args, kwargs, Waits.YES)
        except RuntimeError as error:
            if _only_running_tells(func, error):
                return self._looks.compute(func, args, kwargs, Waits.NO)
            raise _as_on_a_card(error) from None
        writing.write(self.tape, func, args, kwargs, operands, result)
        return result

    # -- special cases, by operator: (done, result)

    def _item(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        dtype = args[0].dtype
        # What a guess does least harm with: error checks are False, lengths 1, losses 1.0.
        guess = False if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1
        return True, self._looks.look(args[0], "item", lambda value: value.item(), lambda: guess)

    def _copy_to(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        source, device = args[0], kwargs.get("device")
        keep = {name: value for name, value in kwargs.items() if name in ("dtype", "memory_format")}
        if self.owns(source) and isinstance(device, torch.device) and device.type == "cpu":
            return True, self._to_cpu(source, keep)
        if not self.owns(source) and _is_ours(device):
            return True, self._from_cpu(source, keep, kwargs)
        return False, None

    def _to_cpu(self, source: FakeTensor, keep: dict[str, Any]) -> torch.Tensor:
        copied: torch.Tensor = self._looks.look(
            source,
            "copy to CPU",
            lambda value: aten._to_copy.default(value, **keep) if keep else value.clone(),
            lambda: torch.zeros(source.shape, dtype=keep.get("dtype") or source.dtype, device="cpu"),
        )
        return copied

    def _from_cpu(self, source: torch.Tensor, keep: dict[str, Any], kwargs: dict[str, Any]) -> FakeTensor:
        with torch._C._DisableTorchDispatch():
            layout = torch.empty_like(source, device="meta", requires_grad=False, **keep)
            fake = FakeTensor(self.fake, layout, DEVICE)
            value = writing.held(source)
        operands = Operands.of((value,), kwargs)
        writing.write(self.tape, aten._to_copy.default, (value,), kwargs, operands, fake)
        return fake

    def _copy_into(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        target, source = args[0], args[1]
        if isinstance(target, FakeTensor):
            return False, None
        return True, self._looks.look(source, "copy to CPU", target.copy_, lambda: target)

    def _pack(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        """How many sequences reach each step is known on the CPU, from their lengths, which are there already."""
        data, lengths, batch_first = args
        if isinstance(lengths, FakeTensor):
            kind = (
                f"{lengths.dim()}D {lengths.device} {lengths.type().rpartition('.')[2].removesuffix('Tensor')} tensor"
            )
            raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {kind}")
        with torch._C._DisableTorchDispatch():
            sizes = aten._pack_padded_sequence.default(torch.empty(*data.shape[:2], 1), lengths, batch_first)[1]
            rows = int(lengths.sum())
        with self.fake:
            packed = data.new_empty((rows, *data.shape[2:]))
        operands = writing.taken(aten._pack_padded_sequence.default, args, kwargs)
        writing.write(self.tape, aten._pack_padded_sequence.default, args, kwargs, operands, (packed, sizes))
        return True, (packed, sizes)

    def _pin(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        return True, args[0]

    def _is_pinned(self, _args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        return True, False

    def _higher_order(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        meaning = plain_meaning(func)
        if meaning is not None:
            with self:
                return meaning(*args, **kwargs)
        keys = (torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CompositeImplicitAutograd)
        body = next((func.py_kernels[key] for key in keys if key in func.py_kernels), None)
        if body is not None:
            with self, _unseen_by(body), self._looks.of_nobody():  # the body's own operations come here one by one
                return body(*args, **kwargs)
        with self.fake:
            return func(*args, **kwargs)


_SPECIAL: dict[Any, Callable[..., tuple[bool, Any]]] = {
    aten._local_scalar_dense.default: SimulatedDeviceMode._item,
    aten._to_copy.default: SimulatedDeviceMode._copy_to,
    aten.copy_.default: SimulatedDeviceMode._copy_into,
    aten._pack_padded_sequence.default: SimulatedDeviceMode._pack,
    aten._pin_memory.default: SimulatedDeviceMode._pin,
    aten.is_pinned.default: SimulatedDeviceMode._is_pinned,
}


def _note_nothing(_made_of: torch.Tensor, _made: FakeTensor) -> None:
    """In place of `FakeTensorConverter.set_tensor_memo`."""


def _without_data(leaf: Any) -> Any:
    if not isinstance(leaf, FakeTensor):
        return leaf
    with torch._C._DisableTorchDispatch():
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=_META)


def _compiler_traces() -> bool:
    return any(torch._C._get_dispatch_mode(key) is not None for key in _COMPILER_MODES)


def _is_composite(func: Any) -> bool:
    """Whether an operator is just a series of others.  Those of namespace prim are not in the dispatcher's table."""
    implicit = torch._C.DispatchKey.CompositeImplicitAutograd
    return func.namespace != "prim" and func.has_kernel_for_dispatch_key(implicit)


def _only_running_tells(func: Any, error: RuntimeError) -> bool:
    """Whether a fake operation failed for want of a shape function; those of custom operators fail in many ways."""
    no_shape_function = isinstance(error, NotImplementedError | UnsupportedOperatorException)
    return no_shape_function or func.namespace not in ("aten", "prims", "prim")


@contextlib.contextmanager
def _unseen_by(body: Callable[..., Any]) -> Iterator[None]:
    """Reference implementations of higher-order operators check that no mode is on; this one may be."""
    module, name = sys.modules[body.__module__], "_get_current_dispatch_mode"
    before = getattr(module, name, None)
    if before is None:
        yield
        return
    setattr(module, name, lambda: None)
    try:
        yield
    finally:
        setattr(module, name, before)


def _is_ours(device: object) -> bool:
    return isinstance(device, torch.device) and device.type == "cuda"


def _as_on_a_card(error: RuntimeError) -> RuntimeError:
    """The fake tensors' message about mixed devices, in the words that a card's user would read."""
    if "found two different devices" not in str(error):
        return error
    where = str(error).partition("found two different devices")[2].strip()
    return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {where}!")
