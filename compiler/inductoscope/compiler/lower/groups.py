"""Fusion groups: which operators share a kernel, how they came together, and why neighbours stayed apart.

It knows nothing of kernels' launch or cost.
"""

from __future__ import annotations

import re

import torch

from inductoscope.compiler.compat import onednn
from inductoscope.compiler.lower.apart import reasons_apart
from inductoscope.compiler.lower.nodes import Origins, op_name
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.lower.recording import Call, Compilation
from inductoscope.protocol.report import ApartFrom, FusionGroup, GroupOp

_HEURISTIC = re.compile(r"@triton_heuristics\.(\w+)")
_COMBO = "'combo_grid_meta':"  # how Inductor's launcher is told the parts of a kernel of several
_KIND = {
    "persistent_reduction": "persistent-reduction",
    "cooperative_reduction": "reduction",
    "split_scan": "reduction",
    "reduction": "reduction",
    "pointwise": "pointwise",
    "template": "template",
    "foreach": "foreach",
}


def group_id(graph_id: str, index: int) -> str:
    """The id of a fusion group: its graph's, and its place in the order of calls."""
    return f"{graph_id}:{index}"


def build_groups(
    noted: Compilation, graph_id: str, first: int, places: Places, sources: list[str | None]
) -> list[FusionGroup]:
    """The fusion groups of one graph in call order; `first` is the index of the first one, `sources` a text a call."""
    origins = Origins(noted)
    apart = reasons_apart(noted)
    return [
        FusionGroup(
            id=group_id(graph_id, first + at),
            kernel=call.name,
            kind=(kind := _kind(call, source)),
            fusion=_fusion(call, kind, ops := _ops(call, origins.of_call(call), places)),
            ops=ops,
            apart_from=tuple(
                ApartFrom(group_id(graph_id, first + other), reason) for other, reason in apart.get(at, {}).items()
            ),
        )
        for at, (call, source) in enumerate(zip(noted.calls, sources, strict=True))
    ]


def _ops(call: Call, nodes: tuple[torch.fx.Node, ...], places: Places) -> tuple[GroupOp, ...]:
    """The operators of a kernel; those that a library call does in one stand at the line of the last."""
    fused = onednn.fused_operators(call.nodes[0]) if call.extern else ()
    if fused:
        at = next((place for place in map(places.nearest, nodes) if place is not None), None)
        return tuple(GroupOp(name, at.file if at else None, at.line if at else None) for name in fused)
    found = []
    for node in nodes:
        name, place = op_name(node), places.nearest(node)
        if name is not None:
            found.append(GroupOp(name, place.file if place else None, place.line if place else None))
    return tuple(found)


def _kind(call: Call, source: str | None) -> str:
    if call.extern:
        return "extern"
    if any(leaf.is_template() for leaf in call.nodes):
        return "template"
    heuristic = _HEURISTIC.search(source or "")
    kind = _KIND.get(heuristic[1]) if heuristic else None
    if kind == "foreach" or _COMBO in (source or ""):
        return "foreach" if _is_foreach(call) else "combo"
    if kind is not None:
        return kind
    return "reduction" if any(leaf.is_reduction() for leaf in call.nodes) else "pointwise"


def _is_foreach(call: Call) -> bool:
    """Whether the program itself asked for the list of operations (`torch._foreach_*`)."""
    nodes = [node for leaf in call.nodes for node in getattr(leaf.node, "origins", ())]
    return any("_foreach_" in str(getattr(node, "target", "")) for node in nodes)


def _fusion(call: Call, kind: str, ops: tuple[GroupOp, ...]) -> str:
    if kind in ("foreach", "combo"):
        return "combo"
    if len(ops) <= 1:
        return "none"
    if call.extern:
        return "vertical"
    if kind == "template":
        return "template-epilogue" if len(call.nodes) > 1 else "none"
    return "vertical" if _components(call) == 1 else "horizontal"


def _components(call: Call) -> int:
    """Into how many parts the kernel's operations fall when only producer and consumer are linked."""
    leader = list(range(len(call.nodes)))

    def root(at: int) -> int:
        while leader[at] != at:
            at = leader[at]
        return at

    makes = {buffer: at for at, leaf in enumerate(call.nodes) for buffer in leaf.get_buffer_names()}
    for at, leaf in enumerate(call.nodes):
        for dependency in leaf.read_writes.reads:
            if dependency.name in makes:
                leader[root(at)] = root(makes[dependency.name])
    return len({root(at) for at in range(len(call.nodes))})
