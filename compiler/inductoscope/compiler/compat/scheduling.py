"""Questions to Inductor's scheduler while it is still alive, after it has fused what it wanted to.

Private parts of torch, checked by running on torch 2.11 to 2.15:
- `Scheduler.can_fuse(node1, node2)`: the rule by which every pair is judged; its reasons go to `WhyNoFuse`.
- `Scheduler.will_fusion_create_cycle(node1, node2)`: the other condition that a pair has to meet.
- `Scheduler.name_to_fused_node`: the final node that an operation ended up in.
- Pairs are tried only among nodes that use a buffer in common (`get_possible_fusions`), library calls never.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from inductoscope.compiler.compat import inductor as compat

UNSAID = "the scheduler does not fuse them and gives no reason"
ALLOWED = "the scheduler would allow it and did not choose it"
CYCLE = "will create cycle"


def final_node(leaf: Any) -> Any:
    """The scheduler's final node that a single operation is part of."""
    return leaf.scheduler.name_to_fused_node.get(leaf.get_name(), leaf)


def buffers_read(leaf: Any) -> list[str]:
    """The names of the buffers that an operation reads."""
    return [str(dependency.name) for dependency in leaf.read_writes.reads]


def buffers_made(leaf: Any) -> list[str]:
    """The names of the buffers that an operation makes."""
    return [str(name) for name in leaf.get_buffer_names()]


def views_read(leaf: Any, graph: Any) -> dict[str, int]:
    """Bytes of the parts of each buffer that a library call is given: its inputs may be views of larger buffers.

    Different views of one buffer add up; symbolic sizes count as they are in this run.
    """
    views: dict[str, dict[tuple[str, ...], int]] = {}
    for view in _flat(getattr(leaf.node, "inputs", ())):
        if not hasattr(view, "get_size"):
            continue
        size, layout = view.get_size(), view.get_layout()
        elements = math.prod(_hint(graph, part) for part in size)
        key = (str(size), str(layout.stride), str(layout.offset))
        views.setdefault(view.get_name(), {})[key] = elements * view.get_dtype().itemsize
    return {name: sum(parts.values()) for name, parts in views.items()}


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from _flat(value) if isinstance(value, list | tuple) else (value,)


def _hint(graph: Any, size: Any) -> int:
    """The value of a size in this run; `optimization_hint` makes no guard."""
    return int(graph.sizevars.optimization_hint(size))


def why_apart(first: Any, second: Any) -> str:
    """The scheduler's answer to whether it could fuse two of its final nodes: its reason against it.

    Asked in the way the scheduler itself asks, with nothing written to torch's log of fusions.  To be called inside
    `without_guards`, after code was generated: looking at loops may reorder them.
    """
    reasons: list[str] = []

    def noting(_: Callable[..., Any]) -> Callable[..., Any]:
        def why_not(_why: Any, reason: str, *args: Any) -> None:
            with contextlib.suppress(TypeError, ValueError):  # a reason whose arguments do not fit its text
                reasons.append(reason % args if args else reason)

        return why_not

    scheduler = first.scheduler
    with compat.replaced(compat.WHY_NOT, noting):
        try:
            allowed = scheduler.can_fuse(first, second)
            if not allowed and (second.is_template() or second.is_foreach()):  # these are tried both ways
                allowed = scheduler.can_fuse(second, first)
            cycle = allowed and scheduler.will_fusion_create_cycle(first, second)
        except Exception:  # a node that the scheduler does not expect to be asked about any more
            return UNSAID
    if cycle:
        return CYCLE
    return ALLOWED if allowed else (reasons[0] if reasons else UNSAID)
