"""Recompilations: which guard failed, on which call, and on which line that is to be told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inductoscope.compiler.capture.findings import at_line
from inductoscope.compiler.capture.guards import guard_failure
from inductoscope.compiler.compat import dynamo, dynamo_stacks
from inductoscope.compiler.compat.dynamo_stacks import CodePlace
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, GuardFailure, Place, Recompile, RecompileLimit, Related
from inductoscope.protocol.torch_texts.guards import read_reasons
from inductoscope.protocol.torch_texts.naming import plain


@dataclass(frozen=True)
class Key:
    """What makes two recompilations the same thing to the user: where it is told, and the kind of guard."""

    place: Place
    family: str


class RecompileLog:
    """Collects recompilations and the limit, in the order in which they happen."""

    def __init__(self, user_code: UserCode, target: Target) -> None:
        self._user_code = user_code
        self._target = target
        self._functions: dict[str, CodePlace] = {}
        self._compiling = Place(target.file, target.line, target.name)
        self._recompiles: list[Recompile] = []
        self._limits: list[tuple[str, RecompileLimit]] = []
        self._failed: dynamo.FailedFrame | None = None
        self._called_from: dict[CodePlace, Place] = {}
        self._library: set[str] = set()  # ids of compilations of functions that are not the user's

    def compiles(self, compile_id: str, function: CodePlace | None) -> None:
        """Remember which function torch's frame number (`0` in `0/1`) stands for."""
        if function is not None:
            self._functions[_frame_number(compile_id)] = function
            self._compiling = self._place(function)

    def compiling(self) -> Place:
        """The function that was being compiled last, the target before there was any."""
        return self._compiling

    def fails(self, frame: dynamo.FailedFrame) -> None:
        """Remember the variables that the guards of the coming reasons were checked against, and who calls."""
        self._failed = frame
        caller = self._user_code.innermost_user(frame.callers)
        if caller is not None:
            self._called_from[dynamo_stacks.code_place(frame.code)] = caller

    def meet(self, compile_id: str, payload: str, input_set: int | None) -> Key | None:
        """Take in the reasons for one recompilation."""
        failed, self._failed = self._failed, None
        function = dynamo_stacks.code_place(failed.code) if failed else self._functions.get(_frame_number(compile_id))
        variables = {**failed.f_locals, "G": failed.f_globals} if failed else None
        reasons = read_reasons(payload)
        if function is None or not reasons:
            return None
        guards = tuple(
            guard_failure(reason, self._user_code, variables if at == 0 else None) for at, reason in enumerate(reasons)
        )
        place = self._place(function)
        if not self._user_code.is_user(function.file):
            self._library.add(compile_id)
        recompile = Recompile(place.file, place.line, function.function, compile_id, input_set, guards)
        self._recompiles.append(recompile)
        return self._key(recompile)

    def meet_limit(self, name: str, value: int, function: CodePlace) -> RecompileLimit:
        """Take in that Dynamo gave up on a function."""
        place = self._compiling = self._place(function)
        limit = RecompileLimit(value, function.function, place.file, place.line)
        self._limits.append((name, limit))
        return limit

    def recompiles(self) -> tuple[Recompile, ...]:
        """Every attempt to compile again."""
        return tuple(self._recompiles)

    def limit(self) -> RecompileLimit | None:
        """The first function that Dynamo gave up on."""
        return self._limits[0][1] if self._limits else None

    def findings(self) -> tuple[Finding, ...]:
        """One finding for each kind of guard and place, and one for each function given up."""
        by_key: dict[Key, list[Recompile]] = {}
        for recompile in self._recompiles:
            by_key.setdefault(self._key(recompile), []).append(recompile)
        return (
            *(self._told(key, recompiles) for key, recompiles in by_key.items()),
            *(_limit_finding(name, limit) for name, limit in dict.fromkeys(self._limits)),
        )

    def finding(self, key: Key) -> Finding:
        """What is known by now under `key`."""
        return self._told(key, [recompile for recompile in self._recompiles if self._key(recompile) == key])

    def limit_finding(self) -> Finding:
        """The limit that was hit last."""
        return _limit_finding(*self._limits[-1])

    def _told(self, key: Key, recompiles: list[Recompile]) -> Finding:
        library = recompiles[0].compile_id in self._library
        return _finding(key, recompiles, f" `{key.place.function}`" if library else "")

    def _place(self, function: CodePlace) -> Place:
        """Where a function is told: a library's on the user's line that called it, else on the target."""
        if self._user_code.is_user(function.file):
            return Place(function.file, function.line, function.function)
        caller = self._called_from.get(function, Place(self._target.file, self._target.line))
        return replace(caller, function=function.function)

    def _key(self, recompile: Recompile) -> Key:
        guard = recompile.guards[0]
        if guard.file is not None and guard.line is not None:
            return Key(Place(guard.file, guard.line, recompile.function), guard.family)
        return Key(Place(recompile.file, recompile.line, recompile.function), guard.family)


def _frame_number(compile_id: str) -> str:
    return compile_id.partition("/")[0]


def _finding(key: Key, recompiles: list[Recompile], what: str) -> Finding:
    guard, place = recompiles[0].guards[0], key.place
    return at_line(
        "recompile",
        place.file,
        place.line,
        _message(guard, recompiles, what),
        count=len(recompiles),
        guard_family=key.family,
        function=place.function,
        hints=(guard.hint,) if guard.hint else (),
        related=_origin(recompiles[0]),
    )


def _origin(recompile: Recompile) -> tuple[Related, ...]:
    """Where a guarded value comes from: `___stack0` is what the line of the graph break computed."""
    if not recompile.guards[0].source.startswith("___stack"):
        return ()
    return (Related(recompile.file, recompile.line, "the guarded value comes from the graph break on this line"),)


def _message(guard: GuardFailure, recompiles: list[Recompile], what: str) -> str:
    times = "" if len(recompiles) == 1 else f" {len(recompiles)} times"
    return f"Recompiled{what}{times}{_calls(recompiles)}: {_failed(guard)}."


def _failed(guard: GuardFailure) -> str:
    if guard.kind in _UNREADABLE:
        of = f" (of {guard.expected})" if guard.expected else ""
        return f"`{guard.source}` is no longer the same {_UNREADABLE[guard.kind]}{of}"
    now = "its length is now" if guard.kind == "length" else "now"
    values = f" ({now} {guard.actual})" if guard.kind not in _TELL_ACTUAL and guard.actual is not None else ""
    return f"the guard `{plain(guard.text)}` failed{values}"


def _calls(recompiles: list[Recompile]) -> str:
    calls = sorted({r.input_set + 1 for r in recompiles if r.input_set is not None})
    if not calls:
        return ""
    return f" on call {calls[0]}" if len(calls) == 1 else f" on calls {', '.join(map(str, calls))}"


# Guards whose text holds only addresses.
_UNREADABLE = {"identity": "object", "type": "type"}
# Guards whose text holds the actual value already.
_TELL_ACTUAL: frozenset[str] = frozenset({"size", "stride", "dtype", "rank", "device", "dispatch-keys"})


def _limit_finding(name: str, limit: RecompileLimit) -> Finding:
    return at_line(
        "recompile-limit",
        limit.file,
        limit.line,
        f"Dynamo gives up on `{limit.function}`: torch._dynamo.config.{name} ({limit.limit}) was reached. Calls that "
        "none of its compiled versions fits run uncompiled, under fullgraph=True they raise. Make what its guards "
        "compare constant or dynamic, or raise the limit.",
        function=limit.function,
    )
