"""The captured graph as something to run op by op, after Inductor has looked at it.

Inductor changes the graph it is given, so the copy is taken first.  It knows nothing of kernels or reports.
"""

from __future__ import annotations

import copy
from typing import Any

import torch


def copied(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A graph of its own over the same parameters, buffers and modules as `graph`.

    Nested graphs (branches of `torch.cond`) are copied too, since passes rewrite them in place.  Tensors and all
    other modules are shared: training must reach the user's parameters, in-place updates the user's buffers.
    """
    shared: dict[int, Any] = {}
    for module in graph.modules():
        if not isinstance(module, torch.fx.GraphModule):
            shared[id(module)] = module
            continue
        held = [*module.parameters(recurse=False), *module.buffers(recurse=False), *vars(module).values()]
        shared.update({id(value): value for value in held if isinstance(value, torch.Tensor | torch.ScriptObject)})
    return copy.deepcopy(graph, shared)
