"""Every guard of every compiled version, and what became of each dimension of the arguments.

How the text of a check reads as guards is in `torch_texts.guard_facts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inductoscope.compiler.compat.dynamo_guards import GuardsEvent, Leaf, TracedDim
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import Dimension, DimensionLimit, DimensionState, GuardFact, Specialization
from inductoscope.protocol.torch_texts.guard_facts import facts
from inductoscope.protocol.torch_texts.naming import is_of_module, plain


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
        for fact in facts(event.compile_id, leaf.check, leaf.source, leaf.text):
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
