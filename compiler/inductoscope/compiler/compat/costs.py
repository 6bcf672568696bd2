"""What torch itself says of the cost of operators and graphs.

Private parts of torch, the same in 2.11 to 2.15: the formulas of `torch.utils.flop_counter`, and `memory` of Inductor.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch


def flops_of(node: torch.fx.Node) -> int | None:
    """Floating-point operations of a graph node by torch's own formula for its operator, or None where it has none.

    `torch.utils.flop_counter.flop_registry` (2.1 and later) is what Inductor's `count_flops_fx` looks into, which runs
    the operator on fake tensors as well; that costs more than all the rest that is read of a library call.  Symbolic
    sizes count as they are in this run.  To be called inside `without_guards`.
    """
    target = getattr(node.target, "overloadpacket", node.target)
    for_cpu = str(target).partition(".")[2]
    if "_for_cpu" in for_cpu:  # attention on the CPU has no formula of its own, and the arguments of the one that has
        target = getattr(torch.ops.aten, for_cpu.replace("_for_cpu", ""), target)
    try:
        formula = importlib.import_module("torch.utils.flop_counter").flop_registry[target]
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda source: source.meta["val"])
        return _as_in_this_run(formula(*args, **kwargs, out_val=node.meta.get("val")))
    except Exception:  # no formula, or one that does not fit these arguments
        return None


def _as_in_this_run(count: Any) -> int | None:
    """A count with symbolic sizes at the values that they have; asking for it as a number would write to the trace."""
    return count.node.hint if isinstance(count, torch.SymInt) else int(count)


def peak_bytes(graph: Any) -> int | None:
    """Inductor's estimate of the peak memory of a graph in its final order of kernels, or None where it gives none.

    `memory.prepare_planning_info` is what Inductor itself uses to choose that order (2.7 and later).
    """
    scheduler = getattr(graph, "scheduler", None)
    if scheduler is None:
        return None
    try:
        planning = importlib.import_module("torch._inductor.memory")
        peak, _ = planning.prepare_planning_info(
            scheduler.nodes,
            scheduler.name_to_buf,
            scheduler.name_to_fused_node,
            set(graph.graph_inputs),
            set(graph.get_output_names()),
        )
    except Exception:  # planning refuses graphs with subgraphs or unusual layouts
        return None
    return int(peak)
