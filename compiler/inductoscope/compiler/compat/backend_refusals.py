"""Operators that a backend meets and no graph can hold: their result depends on data, or nothing tells its shape.

Dynamo captures the program's own operators; what AOTAutograd makes of them, such as the backward of `y[mask] = v`, may
need `nonzero`.  Such an exception passes through the backend to Dynamo, which makes a graph break of it
(`OutputGraph.call_user_compiler`, `exceptions_allowed_to_be_fallback` in 2.11 to 2.15).  By then tracing stands at the
end of the graph: which operator it was is known only while the exception is being made.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from inductoscope.compiler.compat.dynamo_stacks import written_frames
from inductoscope.compiler.compat.dynamo_trace import harmless
from inductoscope.compiler.compat.inductor import Point, replaced
from inductoscope.compiler.usercode import Frame

_F = "torch._subclasses.fake_tensor"
_WHY = "where tracing stands in the graph when an operator turns out not to fit into one"
MADE: tuple[Point, ...] = (
    Point(_F, "DataDependentOutputException.__init__", _WHY, required=False),
    Point(_F, "DynamicOutputShapeException.__init__", _WHY, required=False),
    Point(_F, "UnsupportedOperatorException.__init__", _WHY, required=False),
)
_NOTED = "_inductoscope_refusal"


@dataclass(frozen=True)
class Refusal:
    """Where the operator stands in the program, outermost frame first, and whether its gradient was being traced."""

    stack: tuple[Frame, ...]
    operator: str
    in_backward: bool

    def message(self) -> str:
        """The break as torch would write it (see `capture/break_text.py`), with advice for the program's author."""
        part = "the backward pass of this operator" if self.in_backward else "this operator"
        no_grad = " Where no gradients are wanted, torch.no_grad() avoids it." if self.in_backward else ""
        return (
            "Backend compiler exception\n"
            f"  Explanation: For {part} the compiler needs `{self.operator}`, whose result depends on the values of "
            "tensors, so no graph can hold it.\n"
            f"  Hint: Write it with operators of a fixed size, such as torch.where or masked_fill.{no_grad}\n"
        )


def kept_by_dynamo() -> tuple[type[BaseException], ...]:
    """What a backend has to let through: Dynamo begins its analysis anew, or makes a graph break of it."""
    exc = importlib.import_module("torch._dynamo.exc")
    return (exc.RestartAnalysis, *getattr(exc, "exceptions_allowed_to_be_fallback", ()))


def skip_behind(error: BaseException | None) -> BaseException | None:
    """Inductor's request to run the frame without compilation, such as for bfloat16 on a card without it.

    It reaches Dynamo as it is where Inductor's caches are in use, as by default; where they are not, as in a run that
    looks only, Inductor wraps it like an error of its own.
    """
    skip = importlib.import_module("torch._dynamo.exc").SkipFrame
    while error is not None and not isinstance(error, skip):
        error = getattr(error, "inner_exception", None) or error.__cause__
    return error


@contextlib.contextmanager
def noting() -> Iterator[None]:
    """For the block, such exceptions remember where they were raised."""
    with contextlib.ExitStack() as stack:
        for point in MADE:
            stack.enter_context(replaced(point, _remembering))
        yield


def refusal_behind(error: BaseException | None) -> Refusal | None:
    """What was noted of the exception that a graph break was made of; None for any other break."""
    while error is not None:
        noted = getattr(error, _NOTED, None)
        if isinstance(noted, Refusal):
            return noted
        error = error.__cause__
    return None


def _remembering(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: BaseException, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with harmless("an operator that fits into no graph"):
            refusal = _now(str(args[0] if args else next(iter(kwargs.values()), "")))
            if refusal is not None:
                setattr(self, _NOTED, refusal)

    return init


def _now(operator: str) -> Refusal | None:
    """Where AOTAutograd stands; None while Dynamo itself traces, which knows its own place."""
    from torch.fx import traceback

    meta = traceback.current_meta
    stack = written_frames(str(meta.get("stack_trace") or ""))
    return Refusal(stack, operator, "in_grad_fn" in meta) if stack else None
