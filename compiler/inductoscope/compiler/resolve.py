"""From a target to a live object that can be called, compiled as the program would compile it.

What the program has already put under `torch.compile` stays as it is; anything else is compiled with the arguments that
the file's conventions give.  Knows nothing of inputs or devices.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler import failures
from inductoscope.compiler.compat import compiled
from inductoscope.compiler.conventions import MODEL, Conventions, place_of
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.protocol.messages import FailureKind, Target
from inductoscope.protocol.report import Place


@dataclass(frozen=True)
class Program:
    """A target's callable before compilation.

    `obj` is what to call, `name` what people call it.
    """

    obj: Any
    name: str

    @property
    def is_compiled(self) -> bool:
        """Whether the program itself put it under `torch.compile`."""
        return compiled.is_compiled(self.obj)

    def signature(self) -> inspect.Signature | None:
        """The parameters of a call, without `self`; None where they cannot be known."""
        subject = compiled.original(self.obj)
        if isinstance(subject, torch.nn.Module):
            subject = subject.forward
        try:
            return inspect.signature(subject)
        except (TypeError, ValueError):
            return None


def resolve(module: types.ModuleType, target: Target, conventions: Conventions, is_user: IsUser) -> Program:
    """The live object of `target`.  Raises `RunFailedError` when there is none or it cannot be made."""
    owner: Any = module
    for part in target.entry.split("."):
        if isinstance(owner, type) and _needs_instance(owner, part):
            owner = instantiate(owner, target, conventions, is_user)
        try:
            owner = getattr(owner, part)
        except AttributeError:
            raise RunFailedError(_no_target(module, target, part)) from None
    if isinstance(owner, type):
        owner = instantiate(owner, target, conventions, is_user)
    if not callable(owner):
        message = f"{target.entry} is a {type(owner).__name__}, which cannot be called; name a function or a module."
        raise RunFailedError(failed(FailureKind.NO_TARGET, message, _definition(target)))
    return Program(owner, target.name)


def compile_program(program: Program, conventions: Conventions, target: Target, is_user: IsUser) -> Any:
    """What to call for the compiled program.  Raises `RunFailedError` when `torch.compile` refuses its arguments."""
    if program.is_compiled:
        return program.obj
    arguments = dict(conventions.compile_kwargs)
    if conventions.backend is not None:
        arguments.setdefault("backend", conventions.backend)
    try:
        return torch.compile(program.obj, **arguments)
    except Exception as error:
        given = ", ".join([target.entry, *(f"{name}={value!r}" for name, value in arguments.items())])
        message = f"torch.compile({given}) is refused: {failures.describe(error)}."
        raise RunFailedError(failed(FailureKind.RUN, message, _definition(target), error)) from error


def instantiate(cls: type, target: Target, conventions: Conventions, is_user: IsUser) -> Any:
    """An instance of a module class, built from `get_init_inputs()` or without arguments."""
    args, kwargs = _init_arguments(cls, target, conventions, is_user)
    try:
        return cls(*args, **kwargs)
    except BaseException as error:
        fallback = _definition(target)
        raise RunFailedError(failures.while_running(error, f"{cls.__name__}(…)", fallback, is_user)) from error


def _init_arguments(
    cls: type, target: Target, conventions: Conventions, is_user: IsUser
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    source = conventions.get_init_inputs
    if source is None or not _built_by_convention(cls, target, conventions):
        how = "without arguments, and the file has no function get_init_inputs() that returns them"
        if source is not None:
            how = f"without arguments; get_init_inputs() is not meant for it (ENTRY = {cls.__name__!r} would say so)"
        _check_construction(cls, (), {}, how, target)
        return (), {}
    try:
        given = source()
    except BaseException as error:
        failure = failures.while_running(error, "get_init_inputs()", place_of(source), is_user)
        raise RunFailedError(failure) from error
    args, kwargs = _split(cls, given)
    place = place_of(source)
    origin = f"with what get_init_inputs() (line {place.line}) returns"
    _check_construction(cls, args, kwargs, origin, target)
    return args, kwargs


def _built_by_convention(cls: type, target: Target, conventions: Conventions) -> bool:
    """`get_init_inputs()` is not for a class that has inputs of its own, beside the one that the file is about."""
    return target.comment is None or cls.__name__ == MODEL or conventions.speaks_of(target.entry.partition(".")[0])


def _split(cls: type, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments in what `get_init_inputs()` returned.

    A dictionary is keywords; a list or tuple is positional, or `[[positional…], {keywords}]` where only that fits.
    """
    if given is None:
        return (), {}
    if isinstance(given, dict):
        return (), given
    if not isinstance(given, list | tuple):
        return (given,), {}
    match given:
        case [list() | tuple() as args, dict() as kwargs] if not _binds(cls, tuple(given), {}):
            if _binds(cls, tuple(args), kwargs):
                return tuple(args), kwargs
    return tuple(given), {}


def _check_construction(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any], how: str, target: Target) -> None:
    try:
        inspect.signature(cls).bind(*args, **kwargs)
    except TypeError as error:
        message = f"{cls.__name__} cannot be built {how}: {error}. Its parameters are {_parameters(cls)}."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, _definition(target))) from None
    except ValueError:  # no signature to check against
        return


def _binds(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def _parameters(cls: type) -> str:
    return str(inspect.signature(cls)).partition(" -> ")[0]


def _needs_instance(cls: type, name: str) -> bool:
    """Whether `cls.name` has to be taken from an instance: a method, or what only `__init__` sets."""
    return not isinstance(inspect.getattr_static(cls, name, None), staticmethod | classmethod | type)


def _no_target(module: types.ModuleType, target: Target, part: str) -> Any:
    names = sorted(name for name in vars(module) if not name.startswith("_"))
    import difflib

    close = difflib.get_close_matches(part, names, n=1)
    advice = f" Is {close[0]} meant?" if close else ""
    message = f"There is no {target.entry} in {module.__name__} after it was imported: {part} is missing.{advice}"
    return failed(FailureKind.NO_TARGET, message, _definition(target))


def _definition(target: Target) -> Place:
    return Place(target.file, target.line, target.name)
