"""What Dynamo tidies up in a graph that it has captured, before the backend gets it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat import passes as points
from inductoscope.compiler.lower.passes import operators, same, shape_of
from inductoscope.protocol.report import PassFact, PassStage, Phase


class DynamoPasses:
    """Notes Dynamo's own passes while `watching`, by compilation."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int], list[PassFact]] = {}

    def take(self, graph_id: str, attempt: int) -> tuple[PassFact, ...]:
        """The passes over the graph of one attempt at a compilation, in order; each is handed out once."""
        return tuple(self._facts.pop((graph_id, attempt), ()))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take notes for the duration of the block."""
        with contextlib.ExitStack() as stack:
            for point in points.DYNAMO:
                stack.enter_context(compat.replaced(point, self._around(point.name)))
            yield

    def _around(self, name: str) -> compat.Make:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(output: Any, *args: Any, **kwargs: Any) -> Any:
                graph = points.graph_of(output)
                before = shape_of(graph) if graph is not None else []
                result = original(output, *args, **kwargs)
                after = shape_of(graph) if graph is not None else []
                if not same(before, after):
                    self._note(name, operators(before), operators(after))
                return result

            return run

        return make

    def _note(self, name: str, before: int, after: int) -> None:
        key = compat.compile_id()
        fact = PassFact(key[0], Phase.FORWARD, name, before, after, stage=PassStage.DYNAMO)
        self._facts.setdefault(key, []).append(fact)
