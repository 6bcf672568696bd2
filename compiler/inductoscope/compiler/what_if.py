"""Would a call with other inputs use what is compiled, or compile again?  torch's own guard check is asked.

The program is called once more for each set of inputs, under the stance in which torch raises where it would compile.
So this comes after everything that is told of the run itself, and nothing is compiled.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductoscope.compiler import failures, inputs
from inductoscope.compiler.capture.guards import guard_failure
from inductoscope.compiler.compat import dynamo_guards, dynamo_stacks
from inductoscope.compiler.compat.dynamo_guards import Misfit
from inductoscope.compiler.inputs import CallInputs, GivenCalls, Source
from inductoscope.compiler.placement import Placement
from inductoscope.compiler.preparation import Prepared
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import input_spec
from inductoscope.protocol.input_spec import CallSpec, InputSpecError
from inductoscope.protocol.report import GuardFailure, Reuse, Status, TargetReport, WhatIf
from inductoscope.protocol.torch_texts.guards import read_reasons
from inductoscope.protocol.torch_texts.naming import plain

_STANCE = "fail_on_recompile"  # of torch.compiler.set_stance, 2.6 and later
_GRAD_MODE = re.compile(r'"grad_mode":(true|false)')  # in the guard on torch's global state, 2.3 to 2.15
_REFUSED = f"when torch.compile stance is '{_STANCE}'"


@dataclass(frozen=True)
class Asked:
    """What the questions are about: the program that was prepared, the callable that was driven, and its report."""

    prepared: Prepared
    callable: Any
    where: Placement
    report: TargetReport


class _CannotAskError(ValueError):
    """A question cannot be put; the message is a sentence."""


def ask(texts: Sequence[str], asked: Asked, user_code: UserCode) -> tuple[WhatIf, ...]:
    """The answer for each set of inputs in `texts`, which are in the language of the inputs comment.

    An argument that a set leaves out is as in the first call of the run.
    """
    answers: list[WhatIf] = []
    for text in texts:
        try:
            sets = input_spec.expand(input_spec.parse(text))
        except InputSpecError as error:
            answers.append(WhatIf((text,), Reuse.UNKNOWN, f"The inputs cannot be read: {error}."))
            continue
        answers += [_answer(one, asked, user_code) for one in sets]
    return tuple(answers)


def _answer(spec: CallSpec, asked: Asked, user_code: UserCode) -> WhatIf:
    described: tuple[str, ...] = (input_spec.render_call(spec),)
    try:
        _check_compiled(asked.report)
        call = _call(spec, asked)
        described = inputs.describe_call(call.args, call.kwargs)
        return _try(call, described, asked, user_code)
    except _CannotAskError as error:
        return WhatIf(described, Reuse.UNKNOWN, str(error))


def _check_compiled(report: TargetReport) -> None:
    if report.status is Status.EAGER or not report.graphs:
        raise _CannotAskError("Nothing of the program was compiled, so there is nothing to use again.")
    limit = report.recompile_limit
    if limit is not None:
        raise _CannotAskError(
            f"Dynamo gave up on {limit.function} (line {limit.line}) at its limit of {limit.limit} versions: it checks "
            "no guards for further ones, and calls that none fits run uncompiled."
        )


def _call(spec: CallSpec, asked: Asked) -> CallInputs:
    """The arguments on the device: those of the set, and for the rest those of the first call."""
    program, source = asked.prepared.placed.program, asked.prepared.placed.source
    try:
        given = inputs.from_spec(spec)
    except (RuntimeError, MemoryError) as error:
        raise _CannotAskError(f"These inputs cannot be made: {failures.describe(error)}.") from error
    signature = program.signature()
    if signature is None:
        return CallInputs(tuple(_moved(value, asked.where) for value in given.args), given.kwargs)
    try:
        bound = signature.bind_partial(*given.args, **given.kwargs)
        first = _first(source, signature)
        changed = {name: _like(value, first.get(name)) for name, value in bound.arguments.items()}
        stay = _staying(asked, signature)
        moved = {name: value if name in stay else _moved(value, asked.where) for name, value in changed.items()}
        all_of_them = {**first, **moved}
        bound.arguments = {name: all_of_them[name] for name in signature.parameters if name in all_of_them}
        signature.bind(*bound.args, **bound.kwargs)
    except TypeError as error:
        raise _CannotAskError(f"{program.name}{signature} cannot be called like this: {error}.") from None
    return CallInputs(bound.args, bound.kwargs)


def _first(source: Source, signature: inspect.Signature) -> Mapping[str, Any]:
    """The arguments of the run's first call by name, none where the program itself makes the calls."""
    if not isinstance(source, GivenCalls):
        return {}
    return signature.bind(*source.calls[0].args, **source.calls[0].kwargs).arguments


def _staying(asked: Asked, signature: inspect.Signature) -> set[str]:
    """The arguments that stay on the CPU wherever the rest is."""
    keep = asked.prepared.conventions.keep_on_cpu
    return {name for index, name in enumerate(signature.parameters) if index in keep}


def _like(value: Any, before: Any) -> Any:
    """`value`, which a description says nothing more of, wanting gradients if the argument that it replaces did."""
    if isinstance(value, torch.Tensor) and isinstance(before, torch.Tensor) and before.requires_grad:
        return value.requires_grad_(value.is_floating_point() or value.is_complex())
    return value


def _moved(value: Any, where: Placement) -> Any:
    if where.is_cpu:
        return value
    if isinstance(value, torch.Tensor):
        return where.move(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: _moved(item, where) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(item, where) for item in value)
    return value


def _try(call: CallInputs, described: tuple[str, ...], asked: Asked, user_code: UserCode) -> WhatIf:
    met: list[Misfit] = []
    try:
        with (
            dynamo_guards.misfits(met.append),
            torch.compiler.set_stance(_STANCE),
            torch.set_grad_enabled(_wants_gradients(asked.report)),
        ):
            asked.callable(*call.args, **call.kwargs)
    except Exception as error:
        if met:
            return _recompiles(met[-1], described, asked.report, user_code)
        if _REFUSED in str(error):
            return WhatIf(
                described,
                Reuse.RECOMPILES,
                "This call reaches code that none of the run's calls reached, which would be compiled then.",
            )
        message = f"The program raises before that is known: {failures.describe(error)}."
        return WhatIf(described, Reuse.FAILS, message)
    return WhatIf(described, Reuse.REUSED, "A compiled version fits: nothing is compiled again.")


def _wants_gradients(report: TargetReport) -> bool:
    """Whether gradients were enabled where the newest version was compiled, which the program itself may decide."""
    modes = (_GRAD_MODE.search(guard.text or "") for guard in reversed(report.guards) if guard.kind == "global-state")
    mode = next((match[1] for match in modes if match), None)
    return torch.is_grad_enabled() if mode is None else mode == "true"


def _recompiles(misfit: Misfit, described: tuple[str, ...], report: TargetReport, user_code: UserCode) -> WhatIf:
    reasons = read_reasons(json.dumps(misfit.reasons))
    guards = tuple(
        _with_line(guard_failure(reason, user_code, misfit.variables), reason.compile_id, report) for reason in reasons
    )
    place = dynamo_stacks.code_place(misfit.code)
    versions = "its compiled version" if len(guards) == 1 else f"none of its {len(guards)} compiled versions"
    fits = "does not fit" if len(guards) == 1 else "fits"
    message = f"{place.function} would be compiled again, since {versions} {fits}: {_failed(guards)}."
    return WhatIf(described, Reuse.RECOMPILES, message, guards, place.function, place.file, place.line)


def _with_line(failure: GuardFailure, compile_id: str, report: TargetReport) -> GuardFailure:
    """The failure with the line that made its guard; torch's text about a tensor lacks it."""
    if failure.line is not None:
        return failure
    kind = "size" if failure.kind == "rank" else failure.kind
    made = (
        guard
        for guard in report.guards
        if (guard.compile_id, guard.source, guard.kind) == (compile_id, plain(failure.source), kind)
    )
    guard = next(made, None)
    return failure if guard is None else replace(failure, file=guard.file, line=guard.line)


def _failed(guards: Sequence[GuardFailure]) -> str:
    return "; ".join(dict.fromkeys(plain(guard.text) for guard in guards))
