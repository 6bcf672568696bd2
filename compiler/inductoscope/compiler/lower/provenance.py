"""Which graph node wrote which line of a kernel.

Inductor builds a kernel in three steps, and each loses the graph node unless it is carried along:

1. lowering makes loop nests, whose body is a closure: the closure is wrapped, so that the node being lowered when it
   was made is on top of a stack while it runs (fused producers are closures inside closures: the innermost is on top);
2. the closure is traced into operations: each traced operation remembers the top of the stack;
3. the operations are run again to write code: while one runs, its node is on top, and every line written then is
   marked.  The marks travel with the lines from buffer to buffer; when a buffer becomes text, line numbers are noted.

The text itself is not touched: a mark is an attribute of a `str` subclass or of Inductor's deferred lines.
It knows nothing of places or reports.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx import Node

from inductoscope.compiler.compat import inductor as compat

_NODE = "inductoscope_node"
_MARK = "inductoscope_mark"


class _Line(str):
    """A line of code with the graph node that it was written for.

    Slices keep the mark: Inductor dedents by slicing.
    """

    inductoscope_mark: Node

    def __getitem__(self, key: Any) -> str:
        return _marked(super().__getitem__(key), self.inductoscope_mark)


def _marked(text: str, node: Node) -> _Line:
    line = _Line(text)
    line.inductoscope_mark = node
    return line


class Provenance:
    """Follows graph nodes through code generation while `watching`, and answers `lines` afterwards."""

    def __init__(self) -> None:
        self._stack: list[Node] = []
        self._texts: dict[str, dict[int, Node]] = {}

    def lines(self, text: str) -> dict[int, Node]:
        """Graph nodes by 0-based line of a text that some buffer produced; empty for any other text."""
        return dict(self._texts.get(text, {}))

    def fragments(self) -> list[tuple[str, dict[int, Node]]]:
        """All texts with marked lines that buffers have produced so far, with their nodes by line."""
        return list(self._texts.items())

    def forget(self) -> None:
        """Drop all texts; call between graphs."""
        self._texts.clear()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Follow nodes for the duration of the block."""
        with contextlib.ExitStack() as stack:
            for point, make in (
                (compat.LOOPS_INIT, self._loops_init),
                (compat.STORE_FUNCTION, self._store_function),
                (compat.TRACE_PROXY, self._trace_proxy),
                (compat.SHIM_NODE, self._shim_node),
                (compat.BUFFER_WRITE, self._buffer_write),
                (compat.BUFFER_VALUE, self._buffer_value),
                (compat.DEFERRED_PREFIX, _keeping_mark),
                (compat.DEFERRED_SLICE, _keeping_mark),
            ):
                stack.enter_context(compat.replaced(point, make))
            yield

    @contextlib.contextmanager
    def _working_for(self, node: Node | None) -> Iterator[None]:
        if node is None:
            yield
            return
        self._stack.append(node)
        try:
            yield
        finally:
            self._stack.pop()

    def _wrapped(self, function: Callable[..., Any], node: Node | None) -> Callable[..., Any]:
        if node is None or hasattr(function, _NODE):
            return function

        @functools.wraps(function, updated=())
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self._working_for(node):
                return function(*args, **kwargs)

        setattr(inner, _NODE, node)
        return inner

    def _loops_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def post_init(loops: Any) -> None:
            original(loops)
            node = compat.current_node()
            # Loop nests are frozen dataclasses; scans and sorts have several bodies.
            object.__setattr__(loops, "inner_fn", self._wrapped(loops.inner_fn, node))
            bodies = getattr(loops, "inner_fns", None)
            if bodies is not None:
                object.__setattr__(loops, "inner_fns", type(bodies)(self._wrapped(body, node) for body in bodies))

        return post_init

    def _store_function(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_store_function(buffer: Any) -> Callable[..., Any]:
            node = getattr(buffer.data.inner_fn, _NODE, None) or buffer.get_origin_node()
            return self._wrapped(original(buffer), node)

        return get_store_function

    def _trace_proxy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create_proxy(tracer: Any, *args: Any, **kwargs: Any) -> Any:
            proxy = original(tracer, *args, **kwargs)
            if self._stack:
                proxy.node.meta[_NODE] = self._stack[-1]
            return proxy

        return create_proxy

    def _shim_node(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_node(interpreter: Any, traced: Node) -> Any:
            with self._working_for(traced.meta.get(_NODE)):
                return original(interpreter, traced)

        return run_node

    def _buffer_write(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def writeline(buffer: Any, line: Any) -> None:
            original(buffer, line)
            # A line that comes from another buffer keeps its mark; a new one gets that of the work under way.
            node = getattr(line, _MARK, None) or (self._stack[-1] if self._stack else None)
            lines = compat.buffer_lines(buffer)
            if node is None or not lines:
                return
            written = lines[-1]
            if isinstance(written, str):
                lines[-1] = _marked(written, node)
            elif hasattr(written, "with_prefix"):
                setattr(written, _MARK, node)

        return writeline

    def _buffer_value(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def getvaluewithlinemap(buffer: Any) -> Any:
            result = original(buffer)
            marks = _line_numbers(compat.buffer_lines(buffer))
            if marks:
                self._texts[result.value] = marks
            return result

        return getvaluewithlinemap


def _keeping_mark(original: Callable[..., Any]) -> Callable[..., Any]:
    def copied(deferred: Any, *args: Any) -> Any:
        new = original(deferred, *args)
        node = getattr(deferred, _MARK, None)
        if node is not None:
            setattr(new, _MARK, node)
        return new

    return copied


def _line_numbers(lines: list[Any]) -> dict[int, Node]:
    """Where the marked lines of a buffer land in its text: the rules of `getvaluewithlinemap`, line for line."""
    marks: dict[int, Node] = {}
    at = 0
    for line in lines:
        text = line if isinstance(line, str) else line() if callable(line) else None
        if text is None:  # a deferred line that was taken back, or a mere position marker
            continue
        height = 1 + text.count("\n")
        node = getattr(line, _MARK, None)
        if node is not None:
            marks.update(dict.fromkeys(range(at, at + height), node))
        at += height
    return marks
