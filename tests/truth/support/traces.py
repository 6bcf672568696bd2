"""Two traces of one program, side by side: everything that is the program's, nothing that is the moment's.

Left out are times, addresses, paths of caches, and the calls above the program, which are those of two drivers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from .account import Account, Record, read_break, steady, user_frames

DYNAMO = frozenset(
    {
        "dynamo_start",
        "dynamo_output_graph",
        "dynamo_cpp_guards_str",
        "dynamo_graph_break_reason",
        "recompile_reasons",
        "create_symbol",
        "symbolic_shape_specialization",
        "dynamo_side_effects",
    }
)
# What is made before the backward pass is compiled, which an unwatched program does only when it asks for gradients.
INDUCTOR = frozenset(
    {
        "guard_added_fast",
        "before_pre_grad_graph",
        "after_pre_grad_graph",
        "aot_joint_graph",
        "aot_forward_graph",
        "aot_inference_graph",
        "before_joint_graph",
        "after_joint_graph",
    }
)
_FIELDS = {
    "create_symbol": ("symbol", "val", "source"),
    "symbolic_shape_specialization": ("sources", "value", "reason"),
    "guard_added_fast": ("expr",),
}
_LATENCY = re.compile(r"^Guard latency = .*$", re.M)

Item = tuple[str, str, int, Any]


def items(account: Account, names: frozenset[str]) -> Counter[Item]:
    """The records of these names: name, compile id, attempt and content."""
    return Counter(
        (record.name, record.compile_id, record.attempt, _content(record))
        for record in account.records
        if record.name in names
    )


def difference(plain: Counter[Item], watched: Counter[Item]) -> tuple[list[Item], list[Item]]:
    """What only the one and what only the other has."""
    return list((plain - watched).elements()), list((watched - plain).elements())


def _content(record: Record) -> Any:
    if record.name == "dynamo_start":
        last = record.fields["stack"][-1]
        return last["line"], last["name"]
    if record.name in _FIELDS:
        return tuple(str(record.fields.get(field)) for field in _FIELDS[record.name])
    if record.name == "dynamo_graph_break_reason":
        return read_break(record)
    if record.name == "dynamo_side_effects":
        return tuple(re.findall(r"^Mutating .*", record.payload, re.M)), user_frames(record.payload)
    return steady(_LATENCY.sub("", record.payload))
