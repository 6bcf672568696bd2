"""What is said of sizes that can differ, against torch's own guard check: it has to take those sizes and no others."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inductoscope.compiler.capture import Capture
from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Dimension, DimensionState

PROGRAM = Path(__file__).parent / "lines" / "dimensions.py"
LINES = {
    match[1]: number
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
    if (match := re.search(r"# <(\w+)>", text))
}
GIVEN = {"x": 24, "y": 12}
GIVEN_OF = {"alike": {"x": 24, "y": 24}, "twice": {"x": 24, "y": 48}}
PINNED = {"exact", "buffered"}
FREE = {"free"}
DUCKS = {"alike"}
"""Where torch takes two sizes for one from the start, because they are equal: no line asks for that."""

pytestmark = pytest.mark.slow


class Vector:
    """A tensor of one dimension, as far as a condition on its size looks at it."""

    def __init__(self, size: int) -> None:
        self._size = size

    def size(self) -> tuple[int]:
        return (self._size,)

    def stride(self) -> tuple[int]:
        return (1,)


@pytest.fixture(scope="module")
def programs() -> Any:
    spec = importlib.util.spec_from_file_location("dimensions", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted({*LINES, *FREE}))
def test_the_conditions_told_are_those_that_torch_checks(name: str, programs: Any) -> None:
    torch.compiler.reset()
    program = getattr(programs, name)
    given = GIVEN_OF.get(name, GIVEN)
    names = [one for one in inspect.signature(getattr(program, "forward", program)).parameters if one in given]
    compiled = torch.compile(program, backend="eager", dynamic=True)
    facts = captured(compiled, [torch.randn(given[one]) for one in names])
    tried = list(sizes_around([given[one] for one in names]))
    told = {
        sizes
        for sizes in tried
        if all(allows(one, dict(zip(names, sizes, strict=True))) for one in facts.dimensions if one.source in names)
    }
    assert told == {sizes for sizes in tried if fits(compiled, sizes)}


@pytest.mark.parametrize("name", sorted(LINES))
def test_the_line_that_bounds_a_size_is_told(name: str, programs: Any) -> None:
    torch.compiler.reset()
    program = getattr(programs, name)
    given = GIVEN_OF.get(name, GIVEN)
    names = [one for one in inspect.signature(getattr(program, "forward", program)).parameters if one in given]
    facts = captured(torch.compile(program, backend="eager", dynamic=True), [torch.randn(given[one]) for one in names])
    limits = [limit for one in facts.dimensions if one.source in names for limit in one.limits]
    lines = {limit.line for limit in limits if limit.line is not None}
    assert (lines == set()) if name in DUCKS else (LINES[name] in lines)
    states = {one.state for one in facts.dimensions if one.source == "x"}
    assert states == {DimensionState.PINNED if name in PINNED else DimensionState.DYNAMIC}


def captured(compiled: Any, args: list[torch.Tensor]) -> CaptureFacts:
    target = Target(str(PROGRAM), "program", 1, TargetKind.FUNCTION, "program")
    capture = Capture(UserCode(also=(str(PROGRAM),)), target, lambda _: None)
    with capture:
        compiled(*args)
    return capture.facts()


def sizes_around(given: list[int]) -> Iterator[tuple[int, ...]]:
    """Every size up to 140 for one vector; for two, pairs around the given ones."""
    if len(given) == 1:
        yield from ((size,) for size in range(140))
        return
    yield from ((first, second) for first in range(2, 30, 3) for second in range(2, 60, 2))
    yield from ((size, size) for size in range(30))
    yield from ((size, 2 * size) for size in range(30))


def allows(one: Dimension, sizes: dict[str, int]) -> bool:
    size = sizes[one.source]
    if one.state is not DimensionState.DYNAMIC:
        return size == one.size
    if size < (one.minimum or 0) or (one.maximum is not None and size > one.maximum) or size % (one.multiple_of or 1):
        return False
    variables = {name: Vector(value) for name, value in sizes.items()}
    return all(eval(limit.text, variables) for limit in one.limits)


def fits(compiled: Any, sizes: tuple[int, ...]) -> bool:
    """Whether torch uses what is compiled; what the program itself then raises is its own affair."""
    try:
        with torch.compiler.set_stance("fail_on_recompile"):
            compiled(*map(torch.randn, sizes))
    except RuntimeError as error:
        return "fail_on_recompile" not in str(error)
    return True
