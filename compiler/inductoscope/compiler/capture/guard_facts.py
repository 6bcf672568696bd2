"""Every guard of every compiled version, and what became of each dimension of the arguments.

torch checks much that is no part of the program: its own settings, modules that it imported under names of its own, the
tables behind a module's attributes.  Such guards are told too, marked as internal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from inductoscope.compiler.capture.guards import guard_failure
from inductoscope.compiler.compat.dynamo_guards import DYNAMIC_MARKS, GuardsEvent, Leaf, TracedDim
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import Dimension, DimensionLimit, DimensionState, GuardFact, Specialization
from inductoscope.protocol.torch_texts.guards import Reason
from inductoscope.protocol.torch_texts.naming import is_of_module, plain

_STATE = frozenset({"GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"})
_OF_TORCH = re.compile(
    r"__import_|___|_hooks\b|\._(?:modules|parameters|buffers|backward_hooks)$|\.__dict__$|\btorch\b|\.__class__|^G$"
)
_CHECK_TENSOR = re.compile(
    r"check_tensor\(.*?, (?P<type>[\w.]+), DispatchKeySet\((?P<keys>.*?)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)$"
)
_UNMARKED = re.compile(r"hasattr\([^()]*\) == False(?: and hasattr\([^()]*\) == False)*")  # what any tensor is held to
_ANY = "any"
# Tensors of a simulated device are of a class of their own; on the real one the guard is on the usual class.
_SIMULATED, _TENSOR = "torch._subclasses.fake_tensor.FakeTensor", "torch.Tensor"
_ADDRESSES = frozenset({"type", "identity"})
_TENSOR_KINDS = {
    "dtype": "dtype",
    "device": "device",
    "requires-grad": "grad",
    "size": "size",
    "stride": "stride",
    "dispatch-keys": "keys",
}


class GuardLog:
    """Collects the guards and dimensions of each compiled version, in the order of compilation."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._versions: dict[str, GuardsEvent] = {}

    def meet(self, event: GuardsEvent) -> None:
        """Take in a complete version."""
        self._versions[event.compile_id] = event

    def guards(self) -> tuple[GuardFact, ...]:
        """Every guard."""
        leaves = ((event, leaf) for event in self._versions.values() for leaf in event.leaves)
        return tuple(fact for event, leaf in leaves for fact in self._of(event, leaf))

    def dimensions(self, pinned: Sequence[Specialization]) -> tuple[Dimension, ...]:
        """Every dimension of every tensor that is no parameter; `pinned` says which lines need one size."""
        found: list[Dimension] = []
        for event in self._versions.values():
            shapes = [leaf for leaf in event.leaves if leaf.check == "SHAPE_ENV"]
            for tensor in event.tensors:
                if not is_of_module(tensor.source):
                    found += (
                        self._dimension(event.compile_id, tensor.source, at, dim, shapes, pinned)
                        for at, dim in enumerate(tensor.dims)
                    )
        return tuple(found)

    def _of(self, event: GuardsEvent, leaf: Leaf) -> Iterator[GuardFact]:
        at = self._user_code.innermost(leaf.frames)
        for fact in _facts(event.compile_id, leaf):
            yield replace(fact, file=at.file, line=at.line) if at is not None else fact

    def _dimension(
        self,
        compile_id: str,
        source: str,
        at: int,
        dim: TracedDim,
        shapes: Sequence[Leaf],
        pinned: Sequence[Specialization],
    ) -> Dimension:
        place, name = f"{source}.size()[{at}]", f"{plain(source)}.size()[{at}]"
        limits = [self._limit(leaf) for leaf in shapes if place in leaf.text]
        state = DimensionState.DYNAMIC if dim.size.is_symbolic else DimensionState.STATIC
        if state is DimensionState.STATIC and dim.symbol is not None:
            state = DimensionState.PINNED
            limits += [
                DimensionLimit(f"{one.source} == {one.value}", one.file, one.line)
                for one in pinned
                if plain(one.source) == name and one.value == dim.size.expression
            ]
        return Dimension(
            compile_id,
            plain(source),
            at,
            state,
            dim.size.value,
            dim.size.expression if state is DimensionState.DYNAMIC else None,
            dim.minimum,
            dim.maximum,
            dim.multiple_of if dim.multiple_of != 1 else None,
            tuple(dict.fromkeys(limits)),
        )

    def _limit(self, leaf: Leaf) -> DimensionLimit:
        at = self._user_code.innermost(leaf.frames)
        return DimensionLimit(plain(leaf.text), at.file if at else None, at.line if at else None)


def _facts(compile_id: str, leaf: Leaf) -> Iterator[GuardFact]:
    """A check of a tensor is several guards, any other one."""
    text, source = plain(leaf.text), plain(leaf.source)
    match = _CHECK_TENSOR.match(leaf.text) if leaf.check == "TENSOR_MATCH" else None
    if match is not None:
        yield from _of_tensor(compile_id, source, match)
    elif leaf.check in _STATE or (leaf.check == "LAMBDA_GUARD" and leaf.source == "L"):
        yield GuardFact(compile_id, "torch", "global-state", None, text, internal=True)
    elif leaf.check == DYNAMIC_MARKS:
        expected, told = ("none", None) if _UNMARKED.fullmatch(text) else (None, text)
        yield GuardFact(compile_id, source, "dynamic-marks", expected, told, internal=True)
    elif leaf.check == "NO_TENSOR_ALIASING":
        yield GuardFact(compile_id, source, "aliasing", None, text)
    else:
        yield _of_expression(compile_id, source, text, leaf)


def _of_tensor(compile_id: str, source: str, match: re.Match[str]) -> Iterator[GuardFact]:
    for kind, part in _TENSOR_KINDS.items():
        expected = match[part].replace("None", _ANY) if kind in ("size", "stride") else match[part]
        # The check of the device is one of its index, which tensors on the CPU have none of.
        expected = f"index {expected}" if kind == "device" else expected
        internal = kind == "dispatch-keys" or match[part] == "None"
        yield GuardFact(compile_id, source, kind, expected, internal=internal)


def _of_expression(compile_id: str, source: str, text: str, leaf: Leaf) -> GuardFact:
    read = guard_failure(Reason("", text, (), None), UserCode(), None)
    internal = bool(_OF_TORCH.search(leaf.source))
    expected = read.expected if read.expected != text else None
    if read.kind in _ADDRESSES and expected is not None:
        # Its own text is an address.
        return GuardFact(
            compile_id, read.source or source, read.kind, expected.replace(_SIMULATED, _TENSOR), internal=internal
        )
    return GuardFact(compile_id, read.source or source, read.kind, expected, text, internal)
