"""How an operation on device tensors is written on the tape: its operands, what computes it, what it changes, its cost.

Knows operators' schemas and the tape; it neither runs anything nor decides what is an operation on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from inductoscope.compiler.simgpu import standins
from inductoscope.compiler.simgpu.errors import UnknownValueError
from inductoscope.compiler.simgpu.rng import is_random, seeded
from inductoscope.compiler.simgpu.tape import Entry, Operands, Ref, Tape, key_of

aten = torch.ops.aten

_SMALL_BYTES = 1 << 20  # CPU tensors up to this size are copied when they go to the device, larger ones referred to

# They only make another storage the tensor's own: the fake tensor shows that itself, there is nothing to compute.
_REBINDS = {aten.set_.source_Tensor, aten.set_.source_Storage, aten.set_.source_Storage_storage_offset}


def taken(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operands | None:
    """The operands of a call, before it runs: in-place operations may change how their arguments lie.

    None when the tape cannot hold one of them (sparse tensors).
    """
    args, kwargs = standins.used(func, args, kwargs)
    try:
        kept = tree_map(lambda leaf: held(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
        return Operands.of(kept[0], kept[1])
    except NotImplementedError:
        return None


def write(
    tape: Tape, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], operands: Operands | None, result: Any
) -> None:
    """Write a call that gave the fake `result` on the tape."""
    if func in _REBINDS:
        return
    fakes = [leaf for leaf in tree_leaves(result) if isinstance(leaf, FakeTensor)]
    dense = tuple(Ref.of(fake) for fake in fakes if fake.layout is torch.strided)
    if operands is None or len(dense) < len(fakes):
        tape.forget(dense, "sparse tensors are not computed")
        return
    hidden = standins.hidden_writes(func, args, kwargs)
    tape.record(
        Entry(
            _checking_inputs(runnable(func, args, kwargs), operands),
            operands,
            dense,
            written(func, args, kwargs) | {key_of(leaf) for leaf in hidden if isinstance(leaf, FakeTensor)},
            _cost(func, args, kwargs, result),
            str(func._schema.name),
        )
    )


def runnable(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """What computes this call on CPU tensors, with random numbers of its own where it draws some."""
    run = standins.runnable(func)
    return seeded(run, args, kwargs) if is_random(func) else run


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[int]:
    """The storages of the device tensors that the schema marks as written."""
    schema = func._schema
    if not schema.is_mutable:
        return frozenset()
    found = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            by_name = argument.kwarg_only or position >= len(args)
            found.append(kwargs.get(argument.name) if by_name else args[position])
    return frozenset(key_of(leaf) for leaf in tree_leaves(found) if isinstance(leaf, FakeTensor))


def held(tensor: torch.Tensor) -> torch.Tensor:
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
