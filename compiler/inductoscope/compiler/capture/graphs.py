"""The graphs that Dynamo hands to the backend."""

from __future__ import annotations

from inductoscope.compiler.compat import dynamo
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Graph

_CALLS = frozenset({"call_function", "call_method", "call_module"})


def graph_of(event: dynamo.GraphEvent, user_code: UserCode, target: Target) -> Graph:
    """The report's entry for a graph; a function of torch's that wraps the user's is told as the target."""
    place = dynamo.code_place(event.code) if event.code else None
    ops = sum(node.op in _CALLS for node in event.module.graph.nodes)
    if place is None or not user_code.is_user(place.file):
        return Graph(event.compile_id, target.name, target.file, target.line, ops)
    return Graph(event.compile_id, place.function, place.file, place.line, ops)
