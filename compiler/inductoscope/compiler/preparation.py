"""From a request to a program that is ready to be called: import, resolve, find inputs, place, compile."""

from __future__ import annotations

import types
from dataclasses import dataclass, replace
from pathlib import Path

from inductoscope.compiler import conventions, inputs, loader, placement, resolve
from inductoscope.compiler.compat.settings import set_dynamo_config
from inductoscope.compiler.conventions import Conventions
from inductoscope.compiler.failures import IsUser, RunFailedError, failed
from inductoscope.compiler.inputs import GivenCalls, Source
from inductoscope.compiler.placement import Placed, Placement
from inductoscope.compiler.resolve import Program
from inductoscope.compiler.teller import Teller
from inductoscope.protocol.messages import FailureKind, Run, Target
from inductoscope.protocol.report import Place, Rung


@dataclass(frozen=True)
class Prepared:
    """A program on its device with its calls, not yet compiled, and the module that it comes from."""

    module: types.ModuleType
    conventions: Conventions
    placed: Placed


def prepare(request: Run, where: Placement, teller: Teller, is_user: IsUser) -> Prepared:
    """Import the file, find the target and its inputs, and put both on the device.  Raises `RunFailedError`."""
    target = request.target
    with teller.phase("import", Rung.CAPTURE, f"importing {Path(target.file).name}"):
        module = loader.load(target.file, request.overlays, request.search_paths, is_user, where.imported)
    said = conventions.read(module)
    placement.check_required(said, where, target)
    _configure_dynamo(said, target)
    with teller.phase("inputs", Rung.CAPTURE, f"making the inputs of {target.name}"):

        def make() -> tuple[Program, Source]:
            program = resolve.resolve(module, target, said, is_user)
            return program, inputs.find(target, program, said, is_user)

        program, source = where.made(make, said)
        placed = placement.place(program, source, said, where)
    return Prepared(module, said, placed)


def first_call_of(prepared: Prepared) -> Prepared:
    """The same program with the first of its given calls alone."""
    placed = prepared.placed
    if not isinstance(placed.source, GivenCalls):
        return prepared
    return replace(prepared, placed=replace(placed, source=replace(placed.source, calls=placed.source.calls[:1])))


def _configure_dynamo(said: Conventions, target: Target) -> None:
    try:
        set_dynamo_config(said.dynamo_config)
    except AttributeError as error:
        message = f"DYNAMO_CONFIG sets {error}, which torch._dynamo.config does not have: check the spelling."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, Place(target.file, target.line))) from None
    except TypeError as error:
        message = f"DYNAMO_CONFIG sets {error}."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, Place(target.file, target.line))) from None
