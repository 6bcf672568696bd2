"""Make the calls of a target once, and note what each was called with.

It must not change what the program does: the watching stands outside of what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inductoscope.compiler import failures
from inductoscope.compiler.compat import compiled, errors
from inductoscope.compiler.conventions import place_of
from inductoscope.compiler.failures import IsUser, RunFailedError
from inductoscope.compiler.inputs import Exercise, Source, describe_call
from inductoscope.compiler.placement import Placed
from inductoscope.protocol.messages import Failure, Target
from inductoscope.protocol.report import InputSet, Place

MOST_NOTED = 1000
"""Calls after this many are made but not described: a report need not repeat a training run."""


@dataclass
class CallLog:
    """The calls so far; `begin_call` is told the index of each one before it starts."""

    origin: str
    begin_call: Callable[[int], None]
    count: int = 0
    sets: list[InputSet] = field(default_factory=list)

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins."""
        if self.count < MOST_NOTED:
            self.sets.append(InputSet(self.origin, describe_call(args, kwargs)))
        self.begin_call(self.count)
        self.count += 1


def drive(placed: Placed, callable_: Any, log: CallLog, target: Target, is_user: IsUser) -> BaseException | None:
    """Make the calls.

    Returns the exception when compiling failed, which ends the calls as it would end the program.  Raises
    `RunFailedError` when the program itself fails.
    """

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> compiled.Arguments:
        args, kwargs = placed.on_call(args, kwargs)
        log.note(args, kwargs)
        return args, kwargs

    watched = compiled.observed(callable_, before, placed.on_return)
    try:
        _make_calls(placed.source, watched)
    except BaseException as error:
        if errors.is_compile_error(error):
            return error
        raise RunFailedError(_program_error(error, placed.source, target, is_user)) from error
    return None


def _make_calls(source: Source, watched: Any) -> None:
    if isinstance(source, Exercise):
        source.function(watched)
        return
    for call in source.calls:
        watched(*call.args, **call.kwargs)


def _program_error(error: BaseException, source: Source, target: Target, is_user: IsUser) -> Failure:
    if isinstance(source, Exercise):
        return failures.while_running(error, "exercise()", place_of(source.function), is_user)
    return failures.while_running(error, target.name, Place(target.file, target.line, target.name), is_user)
