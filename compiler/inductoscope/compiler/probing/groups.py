"""Which dimensions to try, which of them have to change together, and which sizes they can have.

torch itself is the judge: in a compilation where every size is symbolic, dimensions that have to be equal share a
symbol, and one that is a number in the end can only be that number.  A dimension of size 0 or 1 is never symbolic, and
what comes after a graph break is not known; there, dimensions of equal size at the same position are taken for one.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inductoscope.compiler.probing.arguments import Leaf
from inductoscope.protocol.report import Dimension, DimensionState

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_LARGEST = 1_000_000
_Sizes = Callable[[int], tuple[int, ...]]


def _smaller(size: int) -> tuple[int, ...]:
    """Other sizes to try, smaller ones first: they cost less, and fit into tables that are made for the usual size."""
    return size // 2, size // 4, size * 3 // 4, *_larger(size)


def _larger(size: int) -> tuple[int, ...]:
    """Multiples first: whatever the size has to be divisible by, they are."""
    return size * 2, size * 3, size * 4, size + 1, size + 2


@dataclass(frozen=True)
class Member:
    """Dimension `dim` of the leaf with index `leaf`, and two other sizes to give it."""

    leaf: int
    dim: int
    second: int
    third: int


@dataclass(frozen=True)
class Question:
    """What to try: the first of `ways` in which the program does not fail tells."""

    ways: tuple[tuple[Member, ...], ...]

    @property
    def at(self) -> tuple[int, int]:
        """The leaf and dimension that it is about first."""
        return self.ways[0][0].leaf, self.ways[0][0].dim


@dataclass(frozen=True)
class _Free:
    """A dimension of the arguments, as torch sees it when every size is symbolic."""

    leaf: int
    dim: int
    size: int
    known: Dimension | None

    @property
    def at(self) -> tuple[int, int]:
        return self.leaf, self.dim


def questions(leaves: Sequence[Leaf], told: Sequence[Dimension]) -> tuple[Question, ...]:
    """Free dimensions first, leading ones before others, and of those the size that most arguments share; then those
    that a line of the program needs as they are."""
    dims = [one for at, leaf in enumerate(leaves) for one in _dims(at, leaf, told)]
    shared = Counter((one.dim, one.size) for one in dims)
    dims.sort(key=lambda one: (not _is_free(one), one.dim, -shared[one.dim, one.size], one.leaf))
    asked: set[tuple[int, int]] = set()
    found: list[Question] = []
    for one in dims:
        if one.at in asked or one.size == 0:
            continue
        together = _with_symbol(one, dims)
        alike = [other for other in dims if (other.dim, other.size) == (one.dim, one.size)]
        ways = [way for way in _ordered(one, together, alike) if way]
        if ways:
            asked |= {(member.leaf, member.dim) for member in ways[0]}
            found.append(Question(tuple(dict.fromkeys(ways))))
    return tuple(found)


def _dims(at: int, leaf: Leaf, told: Sequence[Dimension]) -> Iterator[_Free]:
    """The dimensions of a leaf; what is told of them is that of the first version that takes it as it was given."""
    about = [one for one in told if one.source in leaf.sources]
    versions = dict.fromkeys(one.compile_id for one in about)
    for version in versions:
        here = sorted((one for one in about if one.compile_id == version), key=lambda one: one.dim)
        if tuple(one.size for one in here) == leaf.sizes:
            yield from (_Free(at, one.dim, leaf.sizes[one.dim], one) for one in here)
            return
    yield from (_Free(at, dim, size, None) for dim, size in enumerate(leaf.sizes))


def _is_free(one: _Free) -> bool:
    """Whether nothing that torch knows keeps the dimension at its size."""
    return one.size > 1 and one.known is not None and one.known.state is DimensionState.DYNAMIC


def _ordered(one: _Free, together: list[_Free], alike: list[_Free]) -> Iterator[tuple[Member, ...]]:
    if one.known is None or one.size == 1:
        yield from (_members(alike, _smaller), _members([one], _smaller))
    elif _is_free(one):
        joined = [*together, *(other for other in alike if other not in together)]
        yield from (_members(group, sizes) for sizes in (_smaller, _larger) for group in (together, joined))
    else:
        yield from (_members([one], _smaller), _members(alike, _smaller))


def _with_symbol(one: _Free, dims: Sequence[_Free]) -> list[_Free]:
    """The dimensions of the same version whose size depends on the symbol of `one`, itself first."""
    symbols = _symbols(one)
    if one.known is None or len(symbols) != 1:
        return [one]
    version = one.known.compile_id
    others = [
        other
        for other in dims
        if other is not one and other.known and other.known.compile_id == version and _symbols(other) == symbols
    ]
    return [one, *others]


def _symbols(one: _Free) -> frozenset[str]:
    text = one.known.symbol if one.known is not None else None
    tree = _expression(text) if text else None
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) if tree else frozenset()


def _members(group: Sequence[_Free], others: _Sizes) -> tuple[Member, ...]:
    """The group with two other sizes each, the first of `others` that it can have; nothing where there are none."""
    sizes = [one.size for one in group]
    found: list[list[int]] = []
    for candidate in _candidates(group, others):
        if candidate != sizes and candidate not in found and all(map(_allows, group, candidate)):
            found.append(candidate)
        if len(found) == 2:
            return tuple(Member(one.leaf, one.dim, *both) for one, *both in zip(group, *found, strict=True))
    return ()


def _candidates(group: Sequence[_Free], others: _Sizes) -> Iterator[list[int]]:
    """Sizes for all of the group, one list for each other value of what they depend on."""
    of = [_expression(one.known.symbol) if one.known is not None and one.known.symbol else None for one in group]
    base = _base(group, of)
    for value in others(base if base is not None else group[0].size):
        if base is None:
            yield [value for _ in group]
        else:
            yield [value if tree is None else _evaluated(tree, value) for tree in of]


def _base(group: Sequence[_Free], of: Sequence[ast.expr | None]) -> int | None:
    """The value of the one symbol that the sizes depend on; None where they are not said to depend on one."""
    known = [(one.size, tree) for one, tree in zip(group, of, strict=True) if tree is not None]
    bare = [size for size, tree in known if isinstance(tree, ast.Name)]
    names = {node.id for _, tree in known for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if len(names) != 1:
        return None
    most = min(max(size for size, _ in known) + 1, _LARGEST)
    for value in [*bare, *range(1, most)]:
        if all(_evaluated(tree, value) == size for size, tree in known):
            return value
    return None


def _allows(one: _Free, size: int) -> bool:
    if size < 2 or size == one.size:
        return False
    known = one.known
    if known is None or known.state is not DimensionState.DYNAMIC:
        return True
    low, high = known.minimum or 0, known.maximum
    return low <= size and (high is None or size <= high) and size % (known.multiple_of or 1) == 0


def _expression(text: str) -> ast.expr | None:
    """A size of one symbol in whole numbers; None for anything beyond that."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    allowed = (ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.expr_context)
    return tree if all(isinstance(node, allowed) for node in ast.walk(tree)) else None


def _evaluated(tree: ast.expr, value: int) -> int:
    """The expression with its symbol at `value`; 0, which no size may be, where it has no value in whole numbers."""
    if isinstance(tree, ast.Name):
        return value
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        right = _evaluated(tree.right, value)
        if right or not isinstance(tree.op, ast.FloorDiv):
            return _OPERATORS[type(tree.op)](_evaluated(tree.left, value), right)
    return 0
