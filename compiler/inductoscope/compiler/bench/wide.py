"""The same program in float64: the judge of what is only rounding.

Works for programs whose numbers all come from their parameters and arguments; must not change the program otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import torch

from inductoscope.compiler.bench import numerics
from inductoscope.compiler.bench.subject import Call, Subject, eager_call, reseed


def float64_values(subject: Subject) -> numerics.Values | None:
    """What one eager call gives in double precision; None when the program does not run so."""
    try:
        call = eager_call(subject)
        program = call.program.double() if isinstance(call.program, torch.nn.Module) else call.program
        args, kwargs = call.inputs
        given = _widened_all(args), {name: widened(value) for name, value in kwargs.items()}
        wide = Call(program, given, subject.passes)
        reseed()
        result = wide()
    except Exception:
        # A dtype written into the program, a kernel without double precision: no reference then.
        return None
    return numerics.snapshot(wide.everything(result))


def widened(value: object) -> object:
    """`value` with every real floating-point tensor in it as float64; others are left as they are."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype.is_floating_point else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make: Callable[..., object] = type(value)  # a named tuple takes its fields one by one
        return make(*_widened_all(value))
    if isinstance(value, tuple):
        return _widened_all(value)
    if isinstance(value, list):
        return list(_widened_all(tuple(value)))
    if isinstance(value, Mapping):
        return type(value)((name, widened(item)) for name, item in value.items())  # type: ignore[call-arg]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: widened(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **fields)
    return value


def _widened_all(values: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(widened(value) for value in values)
