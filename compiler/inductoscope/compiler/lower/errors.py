"""Errors inside Inductor as one sentence and the user's line."""

from __future__ import annotations

import re
import sys

import torch

from inductoscope.compiler.lower.findings import callers, finding
from inductoscope.compiler.lower.nodes import op_name
from inductoscope.compiler.lower.places import Places, stack_of
from inductoscope.protocol.report import Finding, Place

_LONGEST = 300
_OURS = "inductoscope."
_CALLED = re.compile(r"(?P<outer>\w+)\.[\w.<>]*<locals>\.\w+\(\) (?:got|missing|takes)\b")


def sentence(error: BaseException, node: torch.fx.Node | None) -> str:
    """What failed and why, from the innermost cause of the error."""
    where = f" while lowering {name}" if node is not None and (name := op_name(node)) else ""
    return f"Inductor failed{where}: {_reason(error)}"


def own_failure(error: BaseException, graph: str) -> str:
    """The sentence for a defect of ours: the program is not at fault, and its kernels are not shown."""
    return (
        f"Inductoscope could not read what Inductor made of graph {graph}: {_reason(error)}. The log has the details."
    )


def _reason(error: BaseException) -> str:
    cause = _cause(error)
    text = re.sub(r"\s+", " ", str(cause)).strip() or "no reason given"
    return f"{type(cause).__name__}: {text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"


def error_finding(error: BaseException, node: torch.fx.Node | None, places: Places, otherwise: Place) -> Finding:
    """The `compile-error` on the line whose operator was being lowered, else where its stack or the graph begins."""
    stack = stack_of(node)
    place = places.in_stack(stack) or places.in_stack(str(error)) or otherwise
    return finding(
        "compile-error",
        place,
        sentence(error, node),
        related=callers(places.chain(stack)),
        hint="torch.compile would raise here. Run this part without it (torch.compiler.disable), or write the line "
        "with other operators.",
    )


def is_ours(error: BaseException) -> bool:
    """Whether the error was raised by one of our own hooks: a defect here, which must not be blamed on the program."""
    cause = _cause(error)
    if isinstance(cause, TypeError) and _calls_ours(str(cause)):
        return True
    traceback = cause.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and str(traceback.tb_frame.f_globals.get("__name__", "")).startswith(_OURS)


def _calls_ours(message: str) -> bool:
    """Whether Python says that one of our hooks cannot be called so: torch has changed, and its own code is running."""
    called = _CALLED.match(message)
    ours = (module for name, module in list(sys.modules.items()) if name.startswith(_OURS))
    return called is not None and any(called["outer"] in vars(module) for module in ours)


def _cause(error: BaseException) -> BaseException:
    """Inductor wraps what went wrong in an exception of its own, sometimes twice, and hides that it did."""
    while True:
        hidden = error.__context__ if type(error).__module__.startswith("torch._inductor.") else None
        inner = getattr(error, "inner_exception", None) or error.__cause__ or hidden
        if not isinstance(inner, BaseException) or inner is error:
            return error
        error = inner
