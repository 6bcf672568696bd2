"""Arguments that a generated kernel would take for another type than they have.

Inductor writes a kernel for the types that the captured graph declares.  Where the program is then called with a tensor
of another type, the kernel takes the bytes of one for the other, and what it computes is wrong.  Both sides are known
without running the kernel: its signature, and the tensor that is passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from inductoscope.compiler.compat import kernel_calls as compat
from inductoscope.compiler.lower.findings import finding
from inductoscope.compiler.lower.nodes import Origins
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.lower.recording import Compilation
from inductoscope.protocol.report import Finding, Place


@dataclass(frozen=True)
class Expectation:
    """A kernel takes an argument of the captured graph for elements of the type `declared`, at a line of the model."""

    index: int
    kernel: str
    declared: compat.Declared
    place: Place | None


@dataclass
class Signatures:
    """What the kernels of one captured graph expect of its arguments, and where a call did not keep to it."""

    names: tuple[str, ...]
    expected: list[Expectation] = field(default_factory=list)
    _broken: dict[Expectation, torch.dtype] = field(default_factory=dict)

    def called_with(self, inputs: Sequence[Any]) -> None:
        """A call of the captured graph."""
        for one in self.expected:
            given = inputs[one.index] if one.index < len(inputs) else None
            if isinstance(given, torch.Tensor) and not compat.holds(one.declared, given.dtype):
                self._broken[one] = given.dtype

    def findings(self, otherwise: Place) -> Iterator[Finding]:
        """One finding for each line, argument and kernel; `otherwise` is where the graph begins."""
        for one, dtype in self._broken.items():
            name = self.names[one.index] if one.index < len(self.names) else f"argument {one.index}"
            yield finding("numerics-mismatch", one.place or otherwise, _sentence(one, name, dtype), hint=_HINT)


_HINT = (
    "Make the value a tensor of the expected type before the compiled function is called, or compute it with torch "
    "(torch.rand in place of random.random), so that torch converts it."
)


def expectations(noted: Compilation, places: Places) -> list[Expectation]:
    """What the generated kernels of a graph expect of those inputs that are the captured graph's own arguments."""
    inputs, origins = compat.placeholders(noted.graph), Origins(noted)
    found: dict[Expectation, None] = {}
    for passed in noted.passed:
        placeholder = inputs.get(passed.input)
        index = compat.argument_index(placeholder) if placeholder is not None else None
        if placeholder is not None and index is not None:
            nodes = [node for call in noted.calls if call.name == passed.kernel for node in origins.of_call(call)]
            readers = [node for node in nodes if placeholder in node.all_input_nodes] or nodes[:1]
            where = dict.fromkeys(map(places.of, readers)) or {None: None}
            found |= dict.fromkeys(Expectation(index, passed.kernel, passed.declared, place) for place in where)
    return list(found)


def _sentence(one: Expectation, name: str, dtype: torch.dtype) -> str:
    declared, given = (str(what).removeprefix("torch.") for what in (one.declared, dtype))
    return (
        f"The compiled result is wrong here: the kernel {one.kernel} is written for {declared} elements in `{name}`, "
        f"and what is passed there is a {given} tensor. It takes the bytes of one for the other. Known from the "
        "kernel's signature and the tensor that is passed; nothing was measured."
    )
