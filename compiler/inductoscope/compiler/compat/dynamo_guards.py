"""The guards of a compiled version, and what torch knows of the sizes of its arguments, once it is complete.

Checked by running on torch 2.11 to 2.15.  Guards are read off the tree that torch checks at run time, so none is
missing and none is told that is not checked.  Reading adds none: sizes are read as expressions, and
ranges as torch has them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from inductoscope.compiler.compat import dynamo_stacks as stacks
from inductoscope.compiler.compat.dynamo_trace import harmless
from inductoscope.compiler.compat.dynamo_values import Size, size
from inductoscope.compiler.compat.inductor import Point, replaced
from inductoscope.compiler.usercode import Frame
from inductoscope.protocol.torch_texts.guard_facts import DYNAMIC_MARKS, RELATIONS

CHECK_FUNCTION = Point(
    "torch._dynamo.guards",
    "CheckFunctionManager.__init__",
    "the guards of a version, complete, with their stacks",
    parameters=("f_code", "output_graph"),
)
FAIL_REASONS = Point(
    "torch._dynamo.guards",
    "get_and_maybe_log_recompilation_reasons",
    "which guards stand against a call under the stance `fail_on_recompile`",
)
ALL_POINTS: tuple[Point, ...] = (CHECK_FUNCTION, FAIL_REASONS)

_MARK = "_dynamo_"  # attributes that `mark_dynamic` and its like leave on a tensor (2.1 to 2.15)

# Where torch says a guard comes from: `# code  # file:line in function (place in torch)`, the file's name cut short,
# for a range once for each bound.  The line that merely uses a size first, named for torch's own bounds, is not it.
_PLACE = re.compile(
    r"  # (?P<file>[^\s#]+):(?P<line>\d+) in (?P<function>\S+)(?!\S| \(user code shown is first use of this value)"
)


@dataclass(frozen=True)
class Leaf:
    """One condition that torch checks: the class of the check, its source and its text as torch has them.

    `frames` are the traced ones at which the guard was made, outermost first; empty where torch does not tell.
    """

    check: str
    source: str
    text: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class TracedDim:
    """A dimension of an argument: its size, and the symbol that it had at first, None where it was constant.

    `minimum` and `maximum` are torch's range, None where there is no bound.
    """

    size: Size
    symbol: str | None
    minimum: int | None = None
    maximum: int | None = None
    multiple_of: int | None = None


@dataclass(frozen=True)
class TracedTensor:
    """A tensor that came into a compiled version from outside."""

    source: str
    dims: tuple[TracedDim, ...]


@dataclass(frozen=True)
class GuardsEvent:
    """A compiled version is complete."""

    compile_id: str
    code: CodeType
    leaves: tuple[Leaf, ...]
    tensors: tuple[TracedTensor, ...]


@dataclass(frozen=True)
class Misfit:
    """A call that no compiled version of `code` fits, with torch's reasons, the newest version's first."""

    code: CodeType
    reasons: tuple[str, ...]
    variables: Mapping[str, Any]


def copy_marks(source: Any, copy: Any) -> None:
    """Mark the dimensions of the tensor `copy` as `mark_dynamic` and its like marked those of `source`."""
    vars(copy).update({name: mark for name, mark in vars(source).items() if name.startswith(_MARK)})


def compiled_guards(callback: Callable[[GuardsEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand the guards of every version that is compiled to `callback`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  (stands in for one)
            original(self, *args, **kwargs)
            with harmless("guards"):
                given = signature.bind(self, *args, **kwargs).arguments
                callback(_event(self.guard_manager, given["f_code"], given["output_graph"]))

        return __init__

    return replaced(CHECK_FUNCTION, make)


def misfits(callback: Callable[[Misfit], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every call that torch says no compiled version fits to `callback`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_and_maybe_log_recompilation_reasons(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            reasons = original(entries, frame, *args, **kwargs)
            with harmless("a misfit"):
                variables = {**frame.f_locals, "G": frame.f_globals}
                callback(Misfit(frame.f_code, tuple(map(str, reasons)), variables))
            return reasons

        return get_and_maybe_log_recompilation_reasons

    return replaced(FAIL_REASONS, make)


def _event(manager: Any, code: CodeType, graph: Any) -> GuardsEvent:
    made = tuple(graph.guards)
    files = {code.co_filename, *(frame.file for guard in made for frame in stacks.plain_frames(guard.user_stack or ()))}
    leaves = tuple(
        Leaf(check, source, text.partition("  # ")[0].rstrip(), _frames(check, source, text, made, files))
        for check, source, text in _texts(manager.root)
    )
    return GuardsEvent(stacks.compile_id() or "?", code, leaves, tuple(_tensors(graph)))


def _texts(root: Any) -> Iterator[tuple[str, str, str]]:
    """Class, source and text of every condition in the tree, relations between several sources once."""
    relations: set[str] = set()
    for source, guard in _guards(root):
        texts = guard.verbose_code_parts()
        if type(guard).__name__ == DYNAMIC_MARKS:
            yield DYNAMIC_MARKS, source, _marks(texts)
            continue
        for text in texts:
            if type(guard).__name__ in RELATIONS:
                if text in relations:
                    continue
                relations.add(text)
            yield type(guard).__name__, source, text
    if hasattr(root, "get_epilogue_lambda_guards"):
        for guard in root.get_epilogue_lambda_guards():
            for text in guard.verbose_code_parts():
                yield "SHAPE_ENV", "", text


def _marks(texts: list[str]) -> str:
    """The check of one tensor's marks, which has a part for each kind of mark, as one text."""
    first, *others = texts
    code, mark, place = first.partition("  # ")
    parts = [code.rstrip(), *(text.partition("  # ")[0].rstrip() for text in others)]
    return f"{' and '.join(parts)}{mark}{place}"


def _guards(manager: Any) -> Iterator[tuple[str, Any]]:
    source = manager.get_source()
    for guard in manager.get_leaf_guards():
        yield source, guard
    if hasattr(manager, "get_key_value_managers"):
        for pair in manager.get_key_value_managers().values():
            for child in pair:
                if child is not None:
                    yield from _guards(child)
    for child in manager.get_child_managers():
        yield from _guards(child)


def _frames(check: str, source: str, text: str, made: tuple[Any, ...], files: set[str]) -> tuple[Frame, ...]:
    """Where the guard with this text was made: as an object where it can be told which one it is, else as written."""
    code = text.partition("  # ")[0].rstrip()
    named = [guard for guard in made if guard.name == source and guard.user_stack]
    by_text = [guard for guard in named if code.partition(" and ")[0] in (guard.code_list or ())]
    by_kind = [guard for guard in named if check in (guard.guard_types or ())]
    for guard in (*by_text, *by_kind):
        return stacks.plain_frames(guard.user_stack)
    return tuple(_written_frames(text, files))


def _written_frames(text: str, files: set[str]) -> Iterator[Frame]:
    for written in _PLACE.finditer(text):
        whole = [file for file in files if file.endswith(written["file"])]
        if len(whole) == 1:
            yield Frame(whole[0], int(written["line"]), stacks.original_name(written["function"])[0])


def _tensors(graph: Any) -> Iterator[TracedTensor]:
    for tracked in getattr(graph, "tracked_fakes", None) or ():
        name = tracked.source.name
        shape = getattr(tracked.fake, "shape", None)
        if shape is not None:
            dims = tuple(_dim(extent, graph.shape_env) for extent in shape)
            yield TracedTensor(name if isinstance(name, str) else name(), dims)


def _dim(extent: Any, shape_env: Any) -> TracedDim:
    node = getattr(extent, "node", None)
    if node is None:
        return TracedDim(size(extent), None)
    now, first = size(extent), getattr(node, "_expr", node.expr)
    if not now.is_symbolic:
        return TracedDim(now, str(first))
    bounds = shape_env.bound_sympy(node.expr)
    factor, _ = node.expr.as_coeff_Mul()
    return TracedDim(
        now,
        str(first),
        _bound(bounds.lower),
        _bound(bounds.upper),
        math.lcm(int(factor) if getattr(factor, "is_Integer", False) else 1, *_divisors(node.expr, shape_env)),
    )


def _divisors(expression: Any, shape_env: Any) -> Iterator[int]:
    """The numbers that torch knows `expression` to be a multiple of."""
    for known in getattr(shape_env, "divisible", ()):
        dividend, divisor = known.args
        if dividend == expression and getattr(divisor, "is_Integer", False):
            yield int(divisor)


def _bound(value: Any) -> int | None:
    return int(value) if getattr(value, "is_Integer", False) else None
