"""Kernels as the user knows them: by the line that owns them, and hand-written ones by their own name.

Works on what lowering and a simulated device have found; knows nothing of how.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Kernel, Place


class Launch(Protocol):
    """What a simulated device saw of a hand-written kernel: `count` launches at a line of the program."""

    @property
    def name(self) -> str:
        """The name of the function."""

    @property
    def place(self) -> Place | None:
        """The launching line, where one is known."""

    @property
    def count(self) -> int:
        """How often."""


def owned(kernel: Kernel, target: Target) -> Kernel:
    """A kernel that is all library code belongs to the target that brought it in; `library_lines` say whose it is."""
    if kernel.lines or not kernel.library_lines:
        return kernel
    return replace(kernel, lines=(Place(target.file, target.line, target.name),))


def named(kernel: Kernel, launches: Sequence[Launch]) -> Kernel:
    """A hand-written kernel with its launches and its name in the program; Inductor adds a number to that."""
    if not kernel.user_written:
        return kernel
    lines = {(place.file, place.line) for place in kernel.lines}
    own = own_name(kernel)
    count = sum(one.count for one in launches if one.name == own and _line(one) in lines)
    often = f", launched {_times(count)} in these calls" if count else ""
    return replace(kernel, note=" ".join(filter(None, (kernel.note, f"This is {own} of the program{often}."))))


def outside_of_graphs(kernels: Sequence[Kernel], launches: Sequence[Launch]) -> tuple[str, ...]:
    """Sentences about hand-written kernels that no compiled graph holds: the program launches them itself."""
    inside = {(own_name(kernel), (p.file, p.line)) for kernel in kernels if kernel.user_written for p in kernel.lines}
    return tuple(
        f"The hand-written Triton kernel {one.name} is launched {_times(one.count)} outside of any compiled graph"
        + (f", from line {one.place.line}." if one.place is not None else ".")
        for one in launches
        if (one.name, _line(one)) not in inside
    )


def own_name(kernel: Kernel) -> str:
    """The name of a hand-written kernel in the program."""
    written = re.search(r"^def (\w+)\(", kernel.source or "", re.MULTILINE)
    return written[1] if written else kernel.name


def _line(launch: Launch) -> tuple[str, int] | None:
    return (launch.place.file, launch.place.line) if launch.place is not None else None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
