"""Numbers that a compiled program puts on the device: `torch.tensor(0.0, device=x.device)` inside of it.

With a card, torch moves the number there before the graph sees it, and folds the constant into what uses it.  Here it
cannot be moved, so that the graph has a constant on the CPU and a copy to the device, and kernels would be named after
the copy.  Before Inductor's first pass over a graph the two become what folding would make of a constant there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeGuard

import torch
from torch.fx import GraphModule, Node
from torch.utils import _python_dispatch

aten = torch.ops.aten
_COPIES = (torch.ops.prims.device_put.default, aten._to_copy.default)
# What torch's `constant_fold_uniform_value` does not fold is shown with its copy.
_NOT_FOLDED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


@contextlib.contextmanager
def on_the_device() -> Iterator[None]:
    """While Inductor compiles, graphs have such numbers there."""
    from torch._inductor import compile_fx
    from torch._inductor import config as inductor

    passes = compile_fx._recursive_joint_graph_passes

    def after_lifting(module: GraphModule, *args: Any, **kwargs: Any) -> Any:
        if inductor.joint_graph_constant_folding:
            for node in list(module.graph.nodes):
                _lift(module, node)
        return passes(module, *args, **kwargs)

    compile_fx._recursive_joint_graph_passes = after_lifting
    try:
        yield
    finally:
        compile_fx._recursive_joint_graph_passes = passes


def _lift(module: GraphModule, copy: Node) -> None:
    """If `copy` moves a lifted CPU number to the device, put one that is there in its place."""
    lifted = copy.args[0] if copy.target in _COPIES else None
    if not isinstance(lifted, Node) or lifted.target is not aten.lift_fresh_copy.default:
        return
    constant = lifted.args[0]
    if not isinstance(constant, Node) or constant.op != "get_attr":
        return
    value, made = getattr(module, str(constant.target), None), copy.meta.get("val")
    if not _is_number(value) or not isinstance(made, torch.Tensor):
        return
    if made.device.type != "cuda" or made.dtype != value.dtype:
        return
    with _python_dispatch._disable_current_modes():  # those of the compiler
        number = value.item()
    layout = {"dtype": made.dtype, "layout": torch.strided, "device": made.device, "pin_memory": False}
    with module.graph.inserting_before(copy):
        name = f"{lifted.name}_there"  # what folding makes of it is called `full_default`, as with a card
        there = module.graph.create_node("call_function", aten.full.default, ([], number), layout, name=name)
    there.meta = {**lifted.meta, "val": made}
    copy.replace_all_uses_with(there)
    for node in (copy, lifted, constant):
        if not node.users:
            module.graph.erase_node(node)


def _is_number(value: object) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype not in _NOT_FOLDED
