"""Do compiled and eager compute the same?

Compares everything that a call returned or may have written to: tensors and numbers inside nested tuples, lists, dicts
and dataclasses.  Where the program can also run in float64, that run decides what is only rounding.  Must not know
how the values were computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from inductoscope.protocol.report import Agreement, Numerics, OutputError

# Against float64, compiled code may be this much further off than eager code before it is called different ...
_WORSE_THAN_EAGER = 10.0
# ... and this many units in the last place are never called different.
_ROUNDING_UNITS = 32.0

Values = tuple[torch.Tensor, ...]

_MOST_OUTPUTS = 64
"""Values that are listed one by one."""


def snapshot(value: object) -> Values:
    """Copies of all tensors and numbers inside `value`, in a fixed order."""
    return tuple(
        leaf.detach().clone() if isinstance(leaf, torch.Tensor) else _as_tensor(leaf) for leaf in _leaves(value, set())
    )


def tensors(value: object) -> tuple[torch.Tensor, ...]:
    """The tensors themselves inside `value`."""
    return tuple(leaf for leaf in _leaves(value, set()) if isinstance(leaf, torch.Tensor))


def names(value: object) -> tuple[str, ...]:
    """What people call each value of `snapshot(value)`, a dictionary of what they call the parts."""
    assert isinstance(value, Mapping)
    seen: set[int] = set()
    return tuple(_called(str(part), path) for part, inner in value.items() for path, _ in _paths(inner, "", seen))


def compare(eager: Values, compiled: Values, float64: Values | None) -> Numerics:
    """The verdict over all values.  `float64` is what the same program gives in double precision, where known."""
    if len(eager) != len(compiled):
        return Numerics(Agreement.DIFFERS, note=f"eager gives {len(eager)} values, compiled {len(compiled)}")
    try:
        return _worst(compare_each(eager, compiled, float64))
    except (RuntimeError, NotImplementedError) as error:
        return Numerics(Agreement.UNKNOWN, note=f"the results cannot be compared: {error}")


def compare_each(eager: Values, compiled: Values, float64: Values | None) -> list[Numerics]:
    """The verdict on each value; as many values on both sides.  Raises what torch raises on values without numbers."""
    reference = _usable_reference(float64, eager)
    return [
        _compare_one(index, left, right, reference[index] if reference else None)
        for index, (left, right) in enumerate(zip(eager, compiled, strict=True))
    ]


def outputs(
    called: tuple[str, ...], eager: Values, compiled: Values, float64: Values | None
) -> tuple[OutputError, ...]:
    """The values one by one under the names `called`; arguments only where something is to be said of them."""
    if not len(called) == len(eager) == len(compiled):
        return ()
    try:
        parts = compare_each(eager, compiled, float64)
    except (RuntimeError, NotImplementedError):
        return ()
    found = [
        OutputError(
            name=name,
            form=_form(value),
            agreement=part.agreement,
            max_abs_error=part.max_abs_error,
            max_rel_error=part.max_rel_error,
            eager_float64_error=part.eager_float64_error,
            compiled_float64_error=part.compiled_float64_error,
            note=part.note,
        )
        for name, value, part in zip(called, eager, parts, strict=True)
        if part.agreement is not Agreement.IDENTICAL or not name.startswith("argument")
    ]
    return tuple(found[:_MOST_OUTPUTS])


@dataclass(frozen=True)
class _Distance:
    """The largest absolute and relative difference, and how many elements are not comparable as finite numbers."""

    absolute: float
    relative: float
    odd: int


def _as_tensor(number: int | float | complex) -> torch.Tensor:
    wide = {float: torch.float64, complex: torch.complex128}
    return torch.tensor(number, dtype=wide.get(type(number)))


def _leaves(value: object, seen: set[int]) -> Iterator[torch.Tensor | int | float | complex]:
    return (leaf for _, leaf in _paths(value, "", seen))


def _paths(value: object, path: str, seen: set[int]) -> Iterator[tuple[str, torch.Tensor | int | float | complex]]:
    """Every tensor and number inside `value`, with the way there as the program would write it."""
    if isinstance(value, torch.Tensor | int | float | complex):
        yield path, value
    elif id(value) not in seen:
        seen.add(id(value))
        for step, child in _children(value):
            yield from _paths(child, path + step, seen)


def _children(value: object) -> Sequence[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    return ()


def _called(part: str, path: str) -> str:
    """`result[0].logits`, `argument 1`, `gradient of up.weight`."""
    if part == "result":
        return f"result{path}"
    key, _, rest = path.removeprefix("[").partition("]")
    joint = " of " if part == "gradient" else " "
    key = key.strip("'")
    return f"{part}{joint}{key}{rest}"


def _usable_reference(float64: Values | None, eager: Values) -> Values | None:
    """The float64 run counts only if it has the same results, and its floats really are double precision."""
    if float64 is None or len(float64) != len(eager):
        return None
    for wide, value in zip(float64, eager, strict=True):
        if wide.shape != value.shape or (_inexact(value) and wide.dtype not in (torch.float64, torch.complex128)):
            return None
    return float64


def _compare_one(index: int, eager: torch.Tensor, compiled: torch.Tensor, wide: torch.Tensor | None) -> Numerics:
    if eager.shape != compiled.shape or eager.dtype != compiled.dtype:
        form = f"{_form(eager)} in eager, {_form(compiled)} compiled"
        return Numerics(Agreement.DIFFERS, note=f"value {index} is {form}")
    if not _inexact(eager):
        return _compare_exact(index, eager, compiled, wide)
    distance = _distance(eager, compiled)
    if distance.odd:
        note = f"value {index}: {distance.odd} of {eager.numel()} elements are NaN or infinite on one side only"
        return Numerics(Agreement.DIFFERS, note=note)
    left, right = (_distance(wide, value) if wide is not None else None for value in (eager, compiled))
    lost = int((~eager.isfinite()).sum())
    return Numerics(
        agreement=_judge(distance, left, right, torch.finfo(eager.dtype).eps),
        max_abs_error=distance.absolute,
        max_rel_error=distance.relative,
        eager_float64_error=left.relative if left else None,
        compiled_float64_error=right.relative if right else None,
        note=f"{lost} of {eager.numel()} elements of value {index} are NaN or infinite on both sides" if lost else None,
    )


def _judge(distance: _Distance, eager: _Distance | None, compiled: _Distance | None, epsilon: float) -> Agreement:
    if distance.absolute == 0:
        return Agreement.IDENTICAL
    if eager is None or compiled is None or eager.odd or compiled.odd:
        # Without a reference only gross differences can be told from rounding: fewer than half of the digits agree.
        return Agreement.CLOSE if distance.relative <= math.sqrt(epsilon) else Agreement.DIFFERS
    allowed = max(_WORSE_THAN_EAGER * eager.relative, _ROUNDING_UNITS * epsilon)
    return Agreement.CLOSE if compiled.relative <= allowed else Agreement.DIFFERS


def _compare_exact(index: int, eager: torch.Tensor, compiled: torch.Tensor, wide: torch.Tensor | None) -> Numerics:
    wrong = int((eager != compiled).sum())
    if wrong == 0:
        return Numerics(Agreement.IDENTICAL)
    note = f"value {index}: {wrong} of {eager.numel()} {_form(eager)} elements differ"
    if wide is not None and bool((wide.to(eager.dtype) != eager).any()):
        # Double precision decides otherwise too (an argmax among near ties, say): rounding is at work.
        return Numerics(Agreement.CLOSE, note=f"{note}, where float64 differs from eager as well")
    return Numerics(Agreement.DIFFERS, note=note)


def _distance(left: torch.Tensor, right: torch.Tensor) -> _Distance:
    wide = torch.complex128 if left.dtype.is_complex else torch.float64
    a, b = left.to(wide), right.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    finite = a.isfinite() & b.isfinite()
    if bool(same.all()):
        return _Distance(0.0, 0.0, 0)
    odd = int((~same & ~finite).sum())
    zero = torch.zeros((), dtype=torch.float64, device=a.device)
    absolute = float(torch.where(finite, (a - b).abs(), zero).max())
    scale = float(torch.where(finite, torch.maximum(a.abs(), b.abs()), zero).max())
    return _Distance(absolute, absolute / scale if scale else 0.0, odd)


def _worst(parts: Sequence[Numerics]) -> Numerics:
    order = [Agreement.IDENTICAL, Agreement.CLOSE, Agreement.UNKNOWN, Agreement.DIFFERS]
    if not parts:
        return Numerics(Agreement.UNKNOWN, note="a call gives no tensors or numbers to compare")
    worst = max(parts, key=lambda part: order.index(part.agreement))
    return Numerics(
        agreement=worst.agreement,
        max_abs_error=_largest(part.max_abs_error for part in parts),
        max_rel_error=_largest(part.max_rel_error for part in parts),
        eager_float64_error=_largest(part.eager_float64_error for part in parts),
        compiled_float64_error=_largest(part.compiled_float64_error for part in parts),
        note=worst.note or next((part.note for part in parts if part.note is not None), None),
    )


def _largest(values: Iterator[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _inexact(value: torch.Tensor) -> bool:
    return value.dtype.is_floating_point or value.dtype.is_complex


def _form(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
