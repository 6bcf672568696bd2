"""Calls of oneDNN and of packed MKL products, which frozen graphs on the CPU have: what they compute, and how much.

Read from Inductor's own node of the call: `op_overload`, `inputs` (the tensors in the order of the schema) and
`constant_args` (its last arguments).  Checked by running on 2.13.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_FUSED = {
    "_convolution_pointwise": "aten.convolution",
    "_convolution_pointwise_": "aten.convolution",
    "_convolution_transpose_pointwise": "aten.convolution",
    "_linear_pointwise": "aten.linear",
}
_AFTERWARDS = ("binary_attr", "attr", "unary_attr")
_OTHER_NAMES = {"swish": "silu"}  # torch/_inductor/fx_passes/mkldnn_fusion.py, UnaryAttr
_WEIGHTS = {**dict.fromkeys(_FUSED, "W"), "_mkl_linear": "ORI_W"}
_TRANSPOSED = "_convolution_transpose_pointwise"


def fused_operators(leaf: Any) -> tuple[str, ...]:
    """What a call computes in order, `aten.convolution`, `aten.relu`; nothing where it is no fused one."""
    operator = _operator(leaf)
    if operator is None or operator.__name__.partition(".")[0] not in _FUSED:
        return ()
    names = [argument.name for argument in operator._schema.arguments]
    given = dict(zip(reversed(names), reversed(leaf.node.constant_args), strict=False))
    attributes = (given.get(name) for name in _AFTERWARDS)
    after = (one for one in attributes if isinstance(one, str) and one not in ("", "none"))
    return (_FUSED[operator.__name__.partition(".")[0]], *(f"aten.{_OTHER_NAMES.get(one, one)}" for one in after))


def flops_of(leaf: Any, result: Any) -> int | None:
    """Floating-point operations of the product or convolution in a call; None for others and for symbolic sizes.

    `result` is the fake tensor that the call returns.  Each number of it takes a multiplication and an addition for
    each weight of its channel.
    """
    operator = _operator(leaf)
    name = operator.__name__.partition(".")[0] if operator is not None else None
    if operator is None or name not in _WEIGHTS or name == _TRANSPOSED or not isinstance(result, torch.Tensor):
        return None
    tensors = [argument.name for argument in operator._schema.arguments if "Tensor" in str(argument.type)]
    try:
        weight = [int(size) for size in leaf.node.inputs[tensors.index(_WEIGHTS[name])].get_size()]
    except Exception:  # a symbolic size; a form that takes other tensors
        return None
    numbers = result.numel()
    return 2 * numbers * math.prod(weight[1:]) if isinstance(numbers, int) else None


def _operator(leaf: Any) -> torch._ops.OpOverload | None:
    found = getattr(leaf.node, "op_overload", None)
    return found if isinstance(found, torch._ops.OpOverload) and found.namespace in ("mkldnn", "mkl") else None
