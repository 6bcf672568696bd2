"""The values of device tensors, on demand.

A device tensor has no data.  Every operation on device tensors is written on the tape; when somebody looks at a value,
the operations that this value depends on run on the CPU, in order, and leave the tape.

An operand is kept as a `Ref`: which storage, and how the tensor lay in it *when the operation ran*.  A tensor object
may get another body later (`Module.half()`, `.data =`, `swap_tensors`, `set_`), so the tape never keeps the object.
This module knows neither dispatch modes nor devices' names.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves, tree_map

from inductoscope.compiler.simgpu.errors import UnknownValueError

_log = logging.getLogger(__name__)

BUDGET = 2e10  # CPU operations that one look may cost: some seconds on one core
_MOST_ENTRIES = 100_000
_FEWEST_TO_SWEEP = 256


@dataclass(frozen=True)
class Ref:
    """A device tensor as it was at one moment.  Holds the storage, so that its identity cannot be reused."""

    storage: Any
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    conjugated: bool
    negated: bool

    @staticmethod
    def of(tensor: FakeTensor) -> Ref:
        """Raises NotImplementedError where the tensor has no storage (sparse layouts)."""
        if tensor.layout is not torch.strided:
            raise NotImplementedError(f"{tensor.layout} tensors have no storage")
        return Ref(
            tensor.untyped_storage(),
            tensor.dtype,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.is_conj(),
            tensor.is_neg(),
        )

    @property
    def key(self) -> int:
        """Identity of the storage."""
        return int(self.storage._cdata)


def key_of(tensor: FakeTensor) -> int:
    """Identity of the storage that a device tensor has now."""
    return int(tensor.untyped_storage()._cdata)


@dataclass(frozen=True)
class Operands:
    """The arguments of one operation, device tensors as `Ref`s; taken *before* the operation runs."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @staticmethod
    def of(args: Sequence[Any], kwargs: dict[str, Any]) -> Operands:
        """Raises NotImplementedError as `Ref.of` does."""
        taken = tree_map(_as_ref, (tuple(args), dict(kwargs)))
        return Operands(taken[0], taken[1])

    @property
    def refs(self) -> list[Ref]:
        """Every device tensor among the arguments."""
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Ref)]


def _as_ref(leaf: Any) -> Any:
    return Ref.of(leaf) if isinstance(leaf, FakeTensor) else leaf


@dataclass(frozen=True)
class Entry:
    """One operation: `run` on CPU tensors gives the values of `outputs`, and changes the storages in `writes`."""

    run: Callable[..., Any]
    operands: Operands
    outputs: tuple[Ref, ...]
    writes: frozenset[int]
    cost: float
    name: str
    reads: frozenset[int] = field(init=False)
    makes: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", frozenset(ref.key for ref in self.operands.refs))
        object.__setattr__(self, "makes", frozenset(ref.key for ref in self.outputs) - self.reads)


class _Values:
    """The CPU storage behind each device storage, as far as it is known; forgets those whose device storage died."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageWeakRef, torch.UntypedStorage | str]] = {}
        self._sweep_at = _FEWEST_TO_SWEEP

    def put(self, device_storage: Any, cpu: torch.UntypedStorage | str) -> None:
        """Set a value, or as a text the reason why there is none."""
        self._known[int(device_storage._cdata)] = (StorageWeakRef(device_storage), cpu)
        if len(self._known) > self._sweep_at:
            self._known = {key: entry for key, entry in self._known.items() if not entry[0].expired()}
            self._sweep_at = max(_FEWEST_TO_SWEEP, 2 * len(self._known))

    def get(self, ref: Ref) -> torch.Tensor:
        """A CPU tensor over the value's storage.  Raises UnknownValueError."""
        alive, value = self._known.get(ref.key, (None, ""))
        if alive is None or alive.expired():
            raise UnknownValueError("this value was never computed")
        if isinstance(value, str):
            raise UnknownValueError(value)
        tensor = torch.empty(0, dtype=ref.dtype, device="cpu")
        tensor = tensor.set_(value, ref.offset, ref.shape, ref.stride)
        if ref.conjugated:
            tensor = torch._conj(tensor)
        return torch._neg_view(tensor) if ref.negated else tensor

    def clear(self) -> None:
        self._known.clear()


@contextlib.contextmanager
def _plain_torch() -> Iterator[None]:
    """CPU tensors only: no modes, no autograd."""
    with torch._C._DisableTorchDispatch(), torch.no_grad(), torch._C.DisableTorchFunction():
        yield


class Tape:
    """Operations that have not run, and the values of those that have."""

    def __init__(self, budget: float = BUDGET) -> None:
        self._budget = budget
        self._entries: list[Entry] = []
        self._values = _Values()

    def record(self, entry: Entry) -> None:
        """Write an operation on the tape."""
        self._entries.append(entry)
        if len(self._entries) > _MOST_ENTRIES:
            for old in self._entries:
                self._give_up(old, f"more than {_MOST_ENTRIES} operations were waiting")
            self._entries.clear()

    def put(self, tensor: FakeTensor, cpu: torch.Tensor) -> None:
        """`tensor` lies over the whole of a fresh storage with the value `cpu`, which is not copied."""
        self._values.put(tensor.untyped_storage(), cpu.untyped_storage())

    def forget(self, refs: Iterable[Ref], why: str) -> None:
        """The values in these storages cannot be told any more."""
        for ref in refs:
            self._values.put(ref.storage, why)

    def clear(self) -> None:
        """Forget every operation and value."""
        self._entries.clear()
        self._values.clear()

    def value(self, tensor: FakeTensor) -> torch.Tensor:
        """The value as a CPU tensor, which shares memory with what the tape keeps: copy it before giving it away.

        Raises UnknownValueError with the reason: too costly, or an operation that the CPU does not have.
        """
        wanted = Ref.of(tensor)
        self._settle({wanted.key}, set())
        with _plain_torch():
            return self._values.get(wanted)

    def run_now(self, run: Callable[..., Any], operands: Operands, writes: frozenset[int]) -> tuple[Any, list[Any]]:
        """Run an operation at once; what it does to the storages in `writes` lasts.

        Returns its result, and its operands as CPU tensors, in the order of `operands.refs`.  Raises UnknownValueError
        where an operand has no value, and whatever `run` raises.
        """
        refs = operands.refs
        self._settle({ref.key for ref in refs}, set(writes))
        with _plain_torch():
            on_cpu = [self._values.get(ref) for ref in refs]
            args, kwargs = tree_map(self._on_cpu, (operands.args, operands.kwargs))
            return run(*args, **kwargs), on_cpu

    def _settle(self, needed: set[int], overwritten: set[int]) -> None:
        """Run what the storages in `needed` depend on, and what reads those in `overwritten`.

        Raises UnknownValueError when that costs too much.
        """
        slice_ = self._slice(needed, overwritten)
        cost = sum(entry.cost for entry in slice_)
        if cost > self._budget:
            raise UnknownValueError(
                f"it needs about {cost:.0e} operations on the CPU, more than the limit of {self._budget:.0e}"
            )
        picked = {id(entry) for entry in slice_}
        self._entries = [entry for entry in self._entries if id(entry) not in picked]
        with _plain_torch():
            for entry in slice_:
                self._run(entry)

    def _slice(self, needed: set[int], overwritten: set[int]) -> list[Entry]:
        """Besides, the earlier readers of what the slice itself overwrites; in order of recording."""
        picked: list[Entry] = []
        for entry in reversed(self._entries):
            if (entry.makes | entry.writes) & needed or entry.reads & overwritten:
                picked.append(entry)
                needed |= entry.reads
                overwritten |= entry.writes
        picked.reverse()
        return picked

    def _run(self, entry: Entry) -> None:
        try:
            args, kwargs = tree_map(self._on_cpu, (entry.operands.args, entry.operands.kwargs))
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            self._keep(entry, entry.run(*args, **kwargs), (args, kwargs))
        except UnknownValueError as unknown:
            self._give_up(entry, str(unknown))
        except Exception as error:  # whatever a kernel raises: the value is unknown, the program goes on
            _log.debug("replaying %s failed", entry.name, exc_info=True)
            first_line = str(error).strip().partition("\n")[0][:120]
            self._give_up(entry, f"{entry.name} cannot be run on the CPU ({type(error).__name__}: {first_line})")

    def _on_cpu(self, leaf: Any) -> Any:
        if isinstance(leaf, Ref):
            return self._values.get(leaf)
        if isinstance(leaf, torch.device) and leaf.type != "meta":
            return torch.device("cpu")
        return leaf

    def _keep(self, entry: Entry, result: Any, operands: Any) -> None:
        real = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        inputs = {t.untyped_storage()._cdata for t in tree_leaves(operands) if isinstance(t, torch.Tensor)}
        kept = set[int]()
        for output, value in zip(entry.outputs, real, strict=False):  # stand-ins may give fewer results
            if output.key not in entry.makes or output.key in kept:
                continue  # a view or an in-place result shares the storage of an input
            kept.add(output.key)
            self._keep_one(entry, output, value, inputs)
        rest = (output for output in entry.outputs if output.key in entry.makes - kept)
        self.forget(rest, f"{entry.name} has results that are computed on the GPU only")

    def _keep_one(self, entry: Entry, output: Ref, value: torch.Tensor, inputs: set[int]) -> None:
        if tuple(value.shape) != output.shape:
            self.forget([output], f"{entry.name} gives another shape on the CPU")
            return
        value = value.to(output.dtype)  # statistics that a GPU keeps in float32 and the CPU in the input's type
        same_layout = tuple(value.stride()) == output.stride and value.storage_offset() == output.offset
        if not same_layout or value.untyped_storage()._cdata in inputs or value.is_conj() or value.is_neg():
            elements = output.storage.nbytes() // max(1, output.dtype.itemsize) or value.numel()
            room = torch.empty(elements, dtype=output.dtype, device="cpu")
            value = room.as_strided(output.shape, output.stride, output.offset).copy_(value)
        self._values.put(output.storage, value.untyped_storage())

    def _give_up(self, entry: Entry, why: str) -> None:
        lost = entry.makes | entry.writes
        self.forget((ref for ref in (*entry.outputs, *entry.operands.refs) if ref.key in lost), why)
