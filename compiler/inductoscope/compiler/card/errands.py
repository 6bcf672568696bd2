"""The errands of `inductoscope devices --record`: read the card, and record what torch decides on it for a program."""

from __future__ import annotations

from typing import Any

import torch

from inductoscope.compiler import failures, resolve
from inductoscope.compiler.card.decisions import Recorder
from inductoscope.compiler.compat import card as compat
from inductoscope.compiler.compat import compiled
from inductoscope.compiler.drive import CallLog, drive
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.compiler.inputs import Exercise
from inductoscope.compiler.preparation import Prepared
from inductoscope.protocol.messages import FailureKind, Target
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Place


def check_card() -> None:
    """Raise `RunFailedError` where there is no card to record."""
    if not compat.available():
        message = (
            f"There is no GPU that torch {torch.__version__} can use in this interpreter, so there is nothing to "
            "record: run this on a machine with a GPU, with a torch that is built for it."
        )
        raise RunFailedError(failed(FailureKind.DEVICE, message, None))


def figures() -> OwnDevice:
    """The card of this machine.  Raises `RunFailedError` where it cannot be read."""
    from inductoscope.compiler.card import figures as card

    try:
        return card.read()
    except Exception as error:  # a driver can fail in any way
        message = (
            f"The GPU cannot be read ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})."
        )
        raise RunFailedError(failed(FailureKind.DEVICE, message, None, error)) from error


def decisions(prepared: Prepared, target: Target, is_user: IsUser) -> Recording:
    """What torch decides while the program is compiled and run, forward and backward.  Raises `RunFailedError`."""
    program = resolve.compile_program(prepared.placed.program, prepared.conventions, target, is_user)
    recorder = Recorder()
    with recorder.recording():
        if not isinstance(prepared.placed.source, Exercise):
            program = compiled.observed(program, _as_they_are, _backward)
        log = CallLog(prepared.placed.source.origin, lambda index: None)
        error = drive(prepared.placed, program, log, target, is_user)
        torch.cuda.synchronize()
        recorded = recorder.recorded()
    if error is not None:
        place = Place(target.file, target.line, target.name)
        raise RunFailedError(failures.while_running(error, target.name, place, is_user)) from error
    return recorded


def _backward(result: Any) -> Any:
    """A backward pass where the result of a call can have one: its kernels are in a report too."""
    ends = [tensor for tensor in compat.tensors_in(result) if tensor.requires_grad]
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])
    return result


def _as_they_are(args: tuple[Any, ...], kwargs: dict[str, Any]) -> compiled.Arguments:
    return args, kwargs
