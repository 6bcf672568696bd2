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

from inductoscope.protocol.report import Agreement, Numerics

# Against float64, compiled code may be this much further off than eager code before it is called different ...
_WORSE_THAN_EAGER = 10.0
# ... and this many units in the last place are never called different.
_ROUNDING_UNITS = 32.0

Values = tuple[torch.Tensor, ...]


def snapshot(value: object) -> Values:
    """Copies of all tensors and numbers inside `value`, in a fixed order."""
    return tuple(
        leaf.detach().clone() if isinstance(leaf, torch.Tensor) else _as_tensor(leaf) for leaf in _leaves(value, set())
    )


def tensors(value: object) -> tuple[torch.Tensor, ...]:
    """The tensors themselves inside `value`."""
    return tuple(leaf for leaf in _leaves(value, set()) if isinstance(leaf, torch.Tensor))


def compare(eager: Values, compiled: Values, float64: Values | None) -> Numerics:
    """The verdict over all values.  `float64` is what the same program gives in double precision, where known."""
    if len(eager) != len(compiled):
        return Numerics(Agreement.DIFFERS, note=f"eager gives {len(eager)} values, compiled {len(compiled)}")
    reference = _usable_reference(float64, eager)
    try:
        parts = [
            _compare_one(index, left, right, reference[index] if reference else None)
            for index, (left, right) in enumerate(zip(eager, compiled, strict=True))
        ]
    except (RuntimeError, NotImplementedError) as error:
        return Numerics(Agreement.UNKNOWN, note=f"the results cannot be compared: {error}")
    return _worst(parts)


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
    if isinstance(value, torch.Tensor | int | float | complex):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for child in _children(value):
            yield from _leaves(child, seen)


def _children(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return ()


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
    return Numerics(
        agreement=_judge(distance, left, right, torch.finfo(eager.dtype).eps),
        max_abs_error=distance.absolute,
        max_rel_error=distance.relative,
        eager_float64_error=left.relative if left else None,
        compiled_float64_error=right.relative if right else None,
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
        note=worst.note,
    )


def _largest(values: Iterator[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _inexact(value: torch.Tensor) -> bool:
    return value.dtype.is_floating_point or value.dtype.is_complex


def _form(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
