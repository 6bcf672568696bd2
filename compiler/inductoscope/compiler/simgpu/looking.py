"""Answers for a program that looks at values of device tensors, and for operators that only running can tell about.

The tape computes the value, or the program gets a guess; the journal hears of both.  Knows nothing of dispatching.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from inductoscope.compiler.simgpu.errors import UnknownValueError
from inductoscope.compiler.simgpu.records import Journal, Topic
from inductoscope.compiler.simgpu.tape import Operands, Ref, Tape
from inductoscope.compiler.simgpu.writing import runnable
from inductoscope.compiler.simgpu.writing import written as written_by

DEVICE = torch.device("cuda", 0)


class Waits(enum.Enum):
    """Whether a real program would wait for the device at an operation."""

    YES = enum.auto()
    NO = enum.auto()


class Looks:
    """Looks at the tensors of one fake mode."""

    def __init__(self, tape: Tape, journal: Journal, fake: FakeTensorMode) -> None:
        self._tape, self._journal, self._fake = tape, journal, fake
        self._nobodys = False

    @contextlib.contextmanager
    def of_nobody(self) -> Iterator[None]:
        """For the block, looks are a reference implementation's own: the kernel in its place does without them."""
        before, self._nobodys = self._nobodys, True
        try:
            yield
        finally:
            self._nobodys = before

    def can_tell(self, tensor: FakeTensor) -> bool:
        """Whether the values of a device tensor can be computed; they are, if so."""
        try:
            self._tape.value(tensor)
        except (UnknownValueError, NotImplementedError):  # the latter for layouts that are not simulated
            return False
        return True

    def look(self, tensor: FakeTensor, what: str, read: Callable[[torch.Tensor], Any], guess: Callable[[], Any]) -> Any:
        """`read(value of tensor)`, or `guess()` where the value cannot be told; both are written in the journal."""
        try:
            value = self._tape.value(tensor)
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
                self._journal.note(Topic.VALUES, f"The compiler looked at a value that had to be guessed: {guessed}.")
        elif not self._nobodys:
            self._journal.sync(what, result, guessed)

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], waits: Waits) -> Any:
        """Run an operator on the CPU at once: its result depends on data, or nothing else tells what it is like."""
        run, operands, written = runnable(func, args, kwargs), Operands.of(args, kwargs), written_by(func, args, kwargs)
        try:
            result, values, guessed = self._run_or_guess(run, operands, written)
        except NotImplementedError:
            name = func._schema.name
            raise NotImplementedError(
                f"{name} cannot be simulated: it has neither a shape function nor a CPU kernel in torch "
                f"{torch.__version__}."
            ) from None
        if guessed is not None:
            self._tape.forget((ref for ref in operands.refs if ref.key in written), guessed)
        if waits is Waits.YES:
            self._tell(str(func._schema.name).removeprefix("aten::"), result, guessed)
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        same = {value.untyped_storage()._cdata: fake for value, fake in zip(values, given, strict=True)}
        return tree_map(lambda leaf: self._brought_back(leaf, same, guessed), result)

    def _run_or_guess(
        self, run: Callable[..., Any], operands: Operands, written: frozenset[int]
    ) -> tuple[Any, list[torch.Tensor], str | None]:
        """The result, the operands' CPU tensors, and why they were replaced by ones if they were."""
        try:
            return *self._tape.run_now(run, operands, written), None
        except UnknownValueError as unknown:
            ones = [torch.ones(ref.shape, dtype=ref.dtype, device="cpu") for ref in operands.refs]
            by_ref = dict(zip(map(id, operands.refs), ones, strict=True))
            args, kwargs = tree_map(lambda leaf: by_ref.get(id(leaf), leaf), (operands.args, operands.kwargs))
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                return run(*args, **kwargs), ones, str(unknown)

    def _brought_back(self, leaf: Any, same: dict[int, FakeTensor], guessed: str | None) -> Any:
        """A CPU result on the device: the argument itself where an operator returns it, else a new tensor."""
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if leaf.is_nested or leaf.layout is not torch.strided:
            raise NotImplementedError("Nested and sparse tensors are not simulated on the GPU.")
        argument = same.get(leaf.untyped_storage()._cdata)
        if argument is not None and argument.shape == leaf.shape:
            return argument
        fake = self.upload(leaf)
        if guessed is not None:
            self._tape.forget([Ref.of(fake)], guessed)
        return fake

    def upload(self, value: torch.Tensor) -> FakeTensor:
        """A new device tensor with the value of a CPU tensor, which is copied."""
        with torch._C._DisableTorchDispatch():
            layout = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            fake = FakeTensor(self._fake, layout, DEVICE)
            copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu").copy_(value)
        self._tape.put(fake, copy)
        return fake
