"""The causes that there are fixes for: which findings each is asked about, in the order in which fixes are offered.

A cause is named like its section in docs/fixes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inductoscope.server.features.fixes.causes import (
    assertions,
    branches,
    constants,
    contexts,
    copies,
    counters,
    explicit,
    gradients,
    guards,
    inputs,
    masks,
    numbers,
    numpy_calls,
    scalars,
    seeds,
    settings,
    shapes,
    telling,
    timers,
)
from inductoscope.server.features.fixes.model import Proposal
from inductoscope.server.features.fixes.problem import Problem

_BREAK = frozenset({"graph-break"})
_FAILED = _BREAK | {"compile-error"}
_AGAIN = frozenset({"recompile", "recompile-limit"})


@dataclass(frozen=True)
class Cause:
    """A cause; `complete` is false where the user has to go on writing after the edit, `certain` true where an edit can
    leave what the program computes as it is.
    """

    name: str
    codes: frozenset[str]
    propose: Callable[[Problem], Iterable[Proposal]]
    complete: bool = True
    certain: bool = False


CAUSES = (
    Cause("no-example-inputs", frozenset({"no-inputs"}), inputs.propose, complete=False),
    Cause("asked-for-break", _BREAK, explicit.propose, certain=True),
    Cause("settings", _FAILED | _AGAIN, settings.propose, certain=True),
    Cause("sizes", _AGAIN, shapes.propose, certain=True),
    Cause("python-numbers", _AGAIN, numbers.propose, certain=True),
    Cause("counters", _AGAIN, counters.propose),
    Cause("printing-and-logging", _FAILED, telling.propose),
    Cause("timers", _BREAK, timers.propose),
    Cause("data-dependent-sizes", _FAILED, guards.propose),
    Cause("branches", _BREAK, branches.propose),
    Cause("assertions", _BREAK, assertions.propose),
    Cause("numpy", _BREAK | {"cache-bypass", "dtype-note"}, numpy_calls.propose),
    Cause("masks", _BREAK, masks.propose),
    Cause("numbers-from-tensors", _BREAK | {"device-sync"}, scalars.propose),
    Cause("copies", _BREAK, copies.propose),
    Cause("gradients", _BREAK, gradients.propose),
    Cause("seeds", _BREAK, seeds.propose),
    Cause("contexts", _BREAK, contexts.propose),
    Cause("library-calls", _BREAK, constants.propose),
)
