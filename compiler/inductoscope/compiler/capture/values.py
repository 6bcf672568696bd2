"""What each of the user's lines makes while it is compiled: dtype, sizes, strides and device of its last result.

A line that sets a variable or an attribute is told by what that is set to; any other line by its last operator in the
graph.  Numbers are told where they depend on a size that can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import fx

from inductoscope.compiler.capture import nodes
from inductoscope.compiler.compat import dynamo, dynamo_values
from inductoscope.compiler.compat.dynamo_values import Layout, StoreEvent
from inductoscope.compiler.layouts import devices_of, layouts_of, several_text, size_text, text_of
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import ValueFact
from inductoscope.protocol.torch_texts.naming import plain


class ValueLog:
    """Collects what lines make, graph by graph; sizes read as they stand once the graph is complete."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._stores: list[StoreEvent] = []
        self._found: dict[tuple[object, ...], ValueFact] = {}

    def store(self, event: StoreEvent) -> None:
        """Take in that something is set; whether that is in a graph shows when the graph is complete."""
        name = plain(event.name)
        if self._user_code.is_user(event.at.file) and not name.startswith(("_", ".")):
            self._stores.append(replace(event, name=name))

    def meet(self, event: dynamo.GraphEvent) -> None:
        """Take in a complete graph."""
        # An earlier attempt at this function, which torch gave up, had a graph of its own.
        graph = event.module.graph
        stored = [one for one in self._stores if all(node.graph is graph for node in one.nodes)]
        self._stores = [one for one in self._stores if one.compile_id != event.compile_id]
        made = [fact for store in stored if (fact := self._of_store(store, event.compile_id)) is not None]
        for fact in made:
            self._add(fact)
        lines = {(fact.file, fact.line) for fact in made if fact.device is not None}
        for fact in self._of_operators(event):
            if (fact.file, fact.line) not in lines:
                self._add(fact)

    def values(self) -> tuple[ValueFact, ...]:
        """Each line's results, once for each distinct shape, in the order of lines."""
        return tuple(sorted(self._found.values(), key=lambda fact: (fact.file, fact.line)))

    def _add(self, fact: ValueFact) -> None:
        self._found.setdefault((fact.file, fact.line, fact.name, fact.text, fact.stride, fact.device), fact)

    def _of_store(self, store: StoreEvent, graph: str) -> ValueFact | None:
        values = [dynamo_values.traced_value(node) for node in store.nodes]
        at, last = store.at, store.nodes[-1]
        own = self._user_code.innermost(nodes.stack(last))
        here = own is not None and (own.file, own.line) == (at.file, at.line) and last.op != "placeholder"
        op = _op(last) if here else None
        number = None if store.several else dynamo_values.number(values[0])
        if number is not None:
            return ValueFact(at.file, at.line, op, f"{number[0]} {size_text(number[1])}", graph, None, store.name)
        layouts = layouts_of(values)
        return _fact(at.file, at.line, op, layouts, store.several, graph, store.name) if layouts else None

    def _of_operators(self, event: dynamo.GraphEvent) -> Iterator[ValueFact]:
        """The last result of each stretch of operators that one line made."""
        open_at: tuple[str, int] | None = None
        last: ValueFact | None = None
        for node in nodes.calls(event.module):
            at = self._user_code.innermost(nodes.stack(node))
            value = dynamo_values.traced_value(node)
            several = isinstance(value, list | tuple)
            layouts = layouts_of(value)
            if at is None or not layouts:
                continue
            if last is not None and open_at != (at.file, at.line):
                yield last
            open_at = (at.file, at.line)
            last = _fact(at.file, at.line, _op(node), layouts, several, event.compile_id, None)
        if last is not None:
            yield last


def _fact(
    file: str, line: int, op: str | None, layouts: tuple[Layout, ...], several: bool, graph: str, name: str | None
) -> ValueFact:
    text = several_text(layouts) if several else text_of(layouts[0])
    strides = None if several else layouts[0].strides
    stride = None if strides is None else tuple(size_text(size) for size in strides)
    return ValueFact(file, line, op, text, graph, devices_of(layouts), name, stride)


def _op(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))
