"""The dispatch mode under which the user's program runs: device tensors are fake, looks at values are answered.

Outside the compiler, every operation on device tensors becomes a fake operation (shapes, strides, dtypes) and is
written on the tape.  Where the program looks at a value, which is where a real GPU would be waited for, the tape
computes it, or the program gets a guess and the journal says so.  Operations on CPU tensors pass untouched.  While
the compiler traces, the mode stands aside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from inductoscope.compiler.simgpu import standins
from inductoscope.compiler.simgpu.errors import UnknownValueError
from inductoscope.compiler.simgpu.graphs import plain_meaning
from inductoscope.compiler.simgpu.records import Journal, Topic
from inductoscope.compiler.simgpu.rng import is_random, seeded
from inductoscope.compiler.simgpu.tape import Entry, Operands, Ref, Tape, key_of

aten = torch.ops.aten
_COMPILER_MODES = (
    torch._C._TorchDispatchModeKey.FAKE,
    torch._C._TorchDispatchModeKey.PROXY,
    torch._C._TorchDispatchModeKey.FUNCTIONAL,
)
DEVICE = torch.device("cuda", 0)
_SMALL_BYTES = 1 << 20  # CPU tensors up to this size are copied when they go to the device, larger ones referred to

# They only make another storage the tensor's own: the fake tensor shows that itself, there is nothing to compute.
_REBINDS = {aten.set_.source_Tensor, aten.set_.source_Storage, aten.set_.source_Storage_storage_offset}


class DeviceFakeMode(FakeTensorMode):
    """The fake mode of all device tensors; copying a tensor's attributes must not copy it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceFakeMode:
        return self


class SimulatedDeviceMode(TorchDispatchMode):
    """See the module's text.  Pushed once, for the thread in which the user's program runs."""

    supports_higher_order_operators = True

    def __init__(self, tape: Tape, journal: Journal) -> None:
        super().__init__()
        self.tape, self.journal = tape, journal
        self.fake = DeviceFakeMode(allow_non_fake_inputs=True)
        self._inside_operator = False  # a higher-order operator runs by its reference implementation

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

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(torch._C._get_dispatch_mode(key) is not None for key in _COMPILER_MODES):
            return func(*args, **kwargs)
        fakes = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        if any(fake.fake_mode is not self.fake for fake in fakes):
            return func(*args, **kwargs)  # the compiler's own tensors
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        if func is torch.ops.prims.device_put.default:
            func, args, kwargs = aten._to_copy.default, args[:1], {"device": torch.device(args[1])}
        device = kwargs.get("device")
        if not fakes and not _is_ours(device):
            return func(*args, **kwargs)
        if isinstance(device, torch.device) and device.type == "cuda" and device.index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return self._on_device(func, args, kwargs)

    def _on_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        special = _SPECIAL.get(func)
        if special is not None:
            done, result = special(self, args, kwargs)
            if done:
                return result
        operands = _operands(
            *standins.used(func, args, kwargs)
        )  # before it runs: in-place operations may change how their arguments lie
        try:
            with self.fake:
                result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return self._computed(func, args, kwargs)
        except RuntimeError as error:
            raise _as_on_a_card(error) from None
        self._write_down(func, args, kwargs, operands, result)
        return result

    # -- looking at values

    def look(self, tensor: FakeTensor, what: str, read: Callable[[torch.Tensor], Any], guess: Callable[[], Any]) -> Any:
        """`read(value of tensor)`, or `guess()` where the value cannot be told; both are written in the journal."""
        try:
            value = self.tape.value(tensor)
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                result = read(value)
        except UnknownValueError as unknown:
            result = guess()
            self._tell(what, result, str(unknown))
        else:
            self._tell(what, result, None)
        return result

    def _tell(self, what: str, result: Any, guessed: str | None) -> None:
        """Write a look in the journal, unless it is the compiler's or a reference implementation's own."""
        if torch._guards.CompileContext.current_compile_id() is not None:
            if guessed is not None:
                self.journal.note(Topic.VALUES, f"The compiler looked at a value that had to be guessed: {guessed}.")
        elif not self._inside_operator:
            self.journal.sync(what, result, guessed)

    def _computed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The shape or the value of the result depends on data (`nonzero`, masks, `unique`, `equal`): compute it."""
        name = str(func._schema.name).removeprefix("aten::")
        guessed = None
        try:
            on_cpu = tree_map(lambda leaf: self.tape.value(leaf) if self.owns(leaf) else leaf, (args, kwargs))
        except UnknownValueError as unknown:
            guessed = str(unknown)
            on_cpu = tree_map(lambda leaf: _ones(leaf) if self.owns(leaf) else leaf, (args, kwargs))
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            result = standins.runnable(func)(*on_cpu[0], **on_cpu[1])
        self._tell(name, result, guessed)
        return tree_map(lambda leaf: self.upload(leaf) if isinstance(leaf, torch.Tensor) else leaf, result)

    def upload(self, value: torch.Tensor) -> FakeTensor:
        """A new device tensor with the value of a CPU tensor, which is copied."""
        with torch._C._DisableTorchDispatch():
            layout = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            fake = FakeTensor(self.fake, layout, DEVICE)
            copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu").copy_(value)
        self.tape.put(fake, copy)
        return fake

    # -- writing on the tape

    def _write_down(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], operands: Operands | None, result: Any
    ) -> None:
        if func in _REBINDS:
            return
        fakes = [leaf for leaf in tree_leaves(result) if isinstance(leaf, FakeTensor)]
        try:
            outputs = tuple(Ref.of(fake) for fake in fakes)
        except NotImplementedError:
            outputs, operands = (), None
        if operands is None:  # a sparse tensor somewhere: what has a storage becomes unknown
            dense = [fake for fake in fakes if fake.layout is torch.strided]
            self.tape.forget((Ref.of(fake) for fake in dense), "sparse tensors are not computed")
            return
        run = standins.runnable(func)
        if is_random(func):
            run = seeded(run, args, kwargs)
        written = [*_written(func, args, kwargs), *standins.hidden_writes(func, args, kwargs)]
        self.tape.record(
            Entry(
                _checking_inputs(run, operands),
                operands,
                outputs,
                frozenset(key_of(leaf) for leaf in tree_leaves(written) if isinstance(leaf, FakeTensor)),
                _cost(func, args, kwargs, result),
                str(func._schema.name),
            )
        )

    # -- special cases, by operator: (done, result)

    def _item(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        dtype = args[0].dtype
        # What a guess does least harm with: error checks are False, lengths 1, losses 1.0.
        guess = False if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1
        return True, self.look(args[0], "item", lambda value: value.item(), lambda: guess)

    def _copy_to(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        source, device = args[0], kwargs.get("device")
        keep = {name: value for name, value in kwargs.items() if name in ("dtype", "memory_format")}
        if self.owns(source) and isinstance(device, torch.device) and device.type == "cpu":
            return True, self._to_cpu(source, keep)
        if not self.owns(source) and _is_ours(device):
            return True, self._from_cpu(source, keep, kwargs)
        return False, None

    def _to_cpu(self, source: FakeTensor, keep: dict[str, Any]) -> torch.Tensor:
        copied: torch.Tensor = self.look(
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
            value = _held(source)
        self._write_down(aten._to_copy.default, (value,), kwargs, Operands.of((value,), kwargs), fake)
        return fake

    def _copy_into(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[bool, Any]:
        target, source = args[0], args[1]
        if isinstance(target, FakeTensor):
            return False, None
        return True, self.look(source, "copy to CPU", target.copy_, lambda: target)

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
            before, self._inside_operator = self._inside_operator, True
            try:
                with self:  # the body's own operations come here one by one
                    return body(*args, **kwargs)
            finally:
                self._inside_operator = before
        with self.fake:
            return func(*args, **kwargs)


_SPECIAL: dict[Any, Callable[..., tuple[bool, Any]]] = {
    aten._local_scalar_dense.default: SimulatedDeviceMode._item,
    aten._to_copy.default: SimulatedDeviceMode._copy_to,
    aten.copy_.default: SimulatedDeviceMode._copy_into,
    aten._pin_memory.default: SimulatedDeviceMode._pin,
    aten.is_pinned.default: SimulatedDeviceMode._is_pinned,
}


def _is_ours(device: object) -> bool:
    return isinstance(device, torch.device) and device.type == "cuda"


def _as_on_a_card(error: RuntimeError) -> RuntimeError:
    """The fake tensors' message about mixed devices, in the words that a card's user would read."""
    if "found two different devices" not in str(error):
        return error
    where = str(error).partition("found two different devices")[2].strip()
    return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {where}!")


def _operands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operands | None:
    try:
        held = tree_map(lambda leaf: _held(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
        return Operands.of(held[0], held[1])
    except NotImplementedError:
        return None


def _held(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU operand as the tape keeps it: small ones as a copy, large ones as an alias (see `_checking_inputs`)."""
    if isinstance(tensor, FakeTensor):
        return tensor
    with torch._C._DisableTorchDispatch(), torch.no_grad():
        if tensor.is_inference() or tensor.nbytes <= _SMALL_BYTES:  # an inference tensor has no version to compare
            return tensor.detach().clone()
        return tensor.detach()


def _checking_inputs(run: Callable[..., Any], operands: Operands) -> Callable[..., Any]:
    """`run`, which refuses when a CPU operand that is kept by reference has changed since it was recorded."""
    leaves = tree_leaves((operands.args, operands.kwargs))
    versions = [(leaf, leaf._version) for leaf in leaves if isinstance(leaf, torch.Tensor) and not leaf.is_inference()]
    if not versions:
        return run

    def checked(*args: Any, **kwargs: Any) -> Any:
        if any(tensor._version != version for tensor, version in versions):
            raise UnknownValueError("a CPU tensor was changed after it had been copied to the GPU")
        return run(*args, **kwargs)

    return checked


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Arguments that the schema marks as written."""
    schema = func._schema
    if not schema.is_mutable:
        return []
    found = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            by_name = argument.kwarg_only or position >= len(args)
            found.append(kwargs.get(argument.name) if by_name else args[position])
    return found


def _cost(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> float:
    """CPU operations, roughly: elements of the results, and torch's own count for matmuls and the like."""
    elements = sum(leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
    count = flop_registry.get(getattr(func, "overloadpacket", None))
    if count is None:
        return float(elements)
    try:
        return float(elements + count(*args, **kwargs, out_val=result))
    except Exception:  # the counter does not know this form of the operator: the elements are what is left
        return float(elements)


def _ones(tensor: FakeTensor) -> torch.Tensor:
    return torch.ones(tensor.shape, dtype=tensor.dtype, device="cpu")
