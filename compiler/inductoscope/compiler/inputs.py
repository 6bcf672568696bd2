"""Where the arguments of the calls come from, and the calls themselves.

In this order: the `# inductoscope:` comment above the definition; `exercise(fn)`; `get_input_sets()`; `get_inputs()`;
nothing at all for a function without parameters.  There is no guessing: without any of these there are no inputs.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler import failures
from inductoscope.compiler.conventions import Conventions, place_of
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.compiler.resolve import Program
from inductoscope.protocol import input_spec
from inductoscope.protocol.input_spec import (
    CallSpec,
    Container,
    DictSpec,
    InputSpecError,
    LiteralSpec,
    TensorSpec,
    ValueSpec,
)
from inductoscope.protocol.messages import Failure, FailureKind, Target
from inductoscope.protocol.report import Place

INTEGERS_BELOW = 2
"""Integer tensors hold 0 and 1 only: these are valid indices of nearly every table and labels of nearly every loss."""

_LONGEST_TEXT = 60
_DEEPEST = 8


@dataclass(frozen=True)
class CallInputs:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class GivenCalls:
    """Calls with known arguments; `origin` names their source for people, `place` is where that stands."""

    origin: str
    place: Place
    calls: tuple[CallInputs, ...]


@dataclass(frozen=True)
class Exercise:
    """A function of the file that gets the compiled callable and makes the calls itself."""

    function: Callable[[Any], Any]

    origin = "exercise"


Source = GivenCalls | Exercise


def find(target: Target, program: Program, conventions: Conventions, is_user: IsUser) -> Source:
    """The calls to make.  Raises `RunFailedError` when there are no inputs, or they cannot be made or do not fit."""
    if target.comment is not None:
        calls = _from_comment(target)
    elif conventions.exercise is not None:
        return Exercise(conventions.exercise)
    else:
        calls = _from_functions(target, program, conventions, is_user)
    for call in calls.calls:
        _check_fit(program, call, calls)
    return calls


def describe_call(args: Iterable[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of a call as the language of the comment writes them."""
    return (*(describe(value) for value in args), *(f"{name}={describe(value)}" for name, value in kwargs.items()))


def describe(value: Any) -> str:
    """One argument: a tensor by dtype and shape, containers by their parts, anything else by its text or type."""
    return _describe(value, _DEEPEST)


def _describe(value: Any, depth: int) -> str:
    if isinstance(value, torch.Tensor):
        return _describe_tensor(value)
    if type(value) in (dict, list, tuple):
        return _short(_describe_container(value, depth - 1)) if depth else "…"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype | torch.device):
        return _short(repr(value))
    return type(value).__name__


def _describe_container(value: Any, depth: int) -> str:
    items = itertools.islice(value, _LONGEST_TEXT)  # what comes after these would be cut off anyway
    if type(value) is dict:
        return "{" + ", ".join(f"{_describe(key, depth)}: {_describe(value[key], depth)}" for key in items) + "}"
    inner = ", ".join(_describe(item, depth) for item in items)
    if type(value) is list:
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def _describe_tensor(tensor: torch.Tensor) -> str:
    try:
        return input_spec.tensor_text(str(tensor.dtype), tuple(tensor.shape))
    except RuntimeError:  # a nested tensor of the strided layout has no sizes
        return type(tensor).__name__


def build(spec: ValueSpec) -> Any:
    """The value that `spec` asks for; tensors are random, on the CPU, from torch's global generator."""
    if isinstance(spec, TensorSpec):
        return random_tensor(getattr(torch, spec.dtype), tuple(dim.size for dim in spec.dims))
    if isinstance(spec, LiteralSpec):
        return spec.value
    if isinstance(spec, DictSpec):
        return {key.value: build(item) for key, item in spec.entries}
    items = [build(item) for item in spec.items]
    return items if spec.container is Container.LIST else tuple(items)


def random_tensor(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Normal values for floating point and complex, 0 and 1 for integers, either for bool."""
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float64 if dtype is torch.float64 else torch.float32).to(dtype)
    if dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex128 if dtype is torch.complex128 else torch.complex64).to(dtype)
    return torch.randint(INTEGERS_BELOW, shape).to(dtype)


def _from_comment(target: Target) -> GivenCalls:
    place = Place(target.file, target.line, target.name)
    try:
        sets = input_spec.expand(input_spec.parse(target.comment or ""))
    except InputSpecError as error:
        message = f"The inputs comment of {target.name} cannot be read: {error}. It says: {target.comment}"
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, place)) from None
    try:
        return GivenCalls(target.comment_from or "comment", place, tuple(map(from_spec, sets)))
    except (RuntimeError, MemoryError) as error:
        given = "; ".join(map(input_spec.render_call, sets))
        message = f"The inputs that the comment of {target.name} asks for ({given}) cannot be made: "
        message += f"{failures.describe(error)}. Use smaller ones."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, place, error)) from error


def from_spec(spec: CallSpec) -> CallInputs:
    """The arguments that `spec` asks for, on the CPU; see `build`."""
    args = tuple(build(argument.value) for argument in spec.arguments if argument.name is None)
    kwargs = {argument.name: build(argument.value) for argument in spec.arguments if argument.name is not None}
    return CallInputs(args, kwargs)


def _from_functions(target: Target, program: Program, conventions: Conventions, is_user: IsUser) -> GivenCalls:
    signature = program.signature()
    if signature is not None and not signature.parameters:
        return GivenCalls("no arguments", Place(target.file, target.line, target.name), (CallInputs((), {}),))
    if conventions.get_input_sets is not None:
        return _from_sets(conventions.get_input_sets, is_user)
    if conventions.get_inputs is not None:
        place = place_of(conventions.get_inputs)
        given = _call(conventions.get_inputs, "get_inputs()", place, is_user)
        if given is None or inspect.isawaitable(given) or isinstance(given, Iterator):
            message = f"get_inputs() returned a {type(given).__name__}; it has to return a list of the arguments."
            raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, place))
        return GivenCalls("get_inputs", place, (_as_call(given),))
    raise RunFailedError(_no_inputs(target, signature))


def _no_inputs(target: Target, signature: inspect.Signature | None) -> Failure:
    parameters = f"{signature}".partition(" -> ")[0] if signature is not None else ""
    message = (
        f"No example inputs are known for {target.name}{parameters}. Write a comment above the definition, such as "
        f"`# inductoscope: {_example(signature)}`, or a module function get_inputs()."
    )
    return failed(FailureKind.NO_INPUTS, message, Place(target.file, target.line, target.name))


def _from_sets(source: Callable[[], Any], is_user: IsUser) -> GivenCalls:
    place = place_of(source)
    sets = _call(source, "get_input_sets()", place, is_user)
    if not isinstance(sets, Iterable) or isinstance(sets, torch.Tensor | dict | str):
        message = f"get_input_sets() returned a {type(sets).__name__}; it has to return a list of argument tuples."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, place))
    calls = tuple(map(_as_call, _call(lambda: list(sets), "get_input_sets()", place, is_user)))
    if not calls:
        message = "get_input_sets() returned no sets, so there is no call to make."
        raise RunFailedError(failed(FailureKind.NO_INPUTS, message, place))
    return GivenCalls("get_input_sets", place, calls)


def _as_call(given: Any) -> CallInputs:
    """A list or tuple is positional arguments, a dictionary keywords, anything else one argument."""
    if isinstance(given, dict):
        return CallInputs((), given)
    if isinstance(given, list | tuple):
        return CallInputs(tuple(given), {})
    return CallInputs((given,), {})


def _call(source: Callable[[], Any], name: str, place: Place, is_user: IsUser) -> Any:
    try:
        return source()
    except BaseException as error:
        raise RunFailedError(failures.while_running(error, name, place, is_user)) from error


def _check_fit(program: Program, call: CallInputs, calls: GivenCalls) -> None:
    signature = program.signature()
    if signature is None:
        return
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        given = ", ".join(describe_call(call.args, call.kwargs))
        message = (
            f"{program.name}{str(signature).partition(' -> ')[0]} cannot be called with ({given}): {error}. "
            f"The inputs come from {calls.origin} at line {calls.place.line}."
        )
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, calls.place)) from None


def _example(signature: inspect.Signature | None) -> str:
    """What the comment could begin with: the required parameters, with sizes to be changed."""
    parameters = signature.parameters.values() if signature is not None else ()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [one.name for one in parameters if one.default is inspect.Parameter.empty and one.kind in kinds]
    return ", ".join(f"{name}=f32[4, 128]" for name in names) or "f32[4, 128]"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
