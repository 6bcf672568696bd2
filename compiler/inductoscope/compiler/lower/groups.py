"""Fusion groups: which operators share a kernel, how they came together, and why neighbours stayed apart.

It knows nothing of kernels' launch or cost.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from inductoscope.compiler.lower.nodes import Origins, op_name
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.lower.recording import Call, Compilation
from inductoscope.protocol.report import ApartFrom, FusionGroup, GroupOp

_HEURISTIC = re.compile(r"@triton_heuristics\.(\w+)")
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
    apart = _apart(noted, graph_id, first)
    return [
        FusionGroup(
            id=group_id(graph_id, first + at),
            kernel=call.name,
            kind=(kind := _kind(call, source)),
            fusion=_fusion(call, kind, ops := _ops(origins.of_call(call), places)),
            ops=ops,
            apart_from=tuple(apart.get(at, ())),
        )
        for at, (call, source) in enumerate(zip(noted.calls, sources, strict=True))
    ]


def _ops(nodes: tuple[torch.fx.Node, ...], places: Places) -> tuple[GroupOp, ...]:
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
    if heuristic:
        kind = _KIND.get(heuristic[1])
        if kind == "foreach":
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
    if call.extern or len(ops) <= 1:
        return "none"
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


def _apart(noted: Compilation, graph_id: str, first: int) -> dict[int, list[ApartFrom]]:
    """The scheduler's last reason for each pair of groups that it tried to fuse and that ended up apart."""
    owner = {leaf.get_name(): at for at, call in enumerate(noted.calls) for leaf in call.nodes}
    last: dict[tuple[int, int], str] = {}
    for rejection in noted.rejections:
        one, other = _owner(owner, rejection.first), _owner(owner, rejection.second)
        if one is not None and other is not None and one != other:
            last[one, other] = last[other, one] = rejection.reason
    apart: dict[int, list[ApartFrom]] = {}
    for (one, other), reason in sorted(last.items()):
        apart.setdefault(one, []).append(ApartFrom(group_id(graph_id, first + other), reason))
    return apart


def _owner(owner: dict[str, int], names: frozenset[str]) -> int | None:
    """The one group that all these operations ended up in, or None."""
    groups: set[Any] = {owner.get(name) for name in names}
    return groups.pop() if len(groups) == 1 else None
