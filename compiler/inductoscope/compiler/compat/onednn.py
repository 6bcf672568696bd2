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
_TRANSPOSED = "_convolution_transpose_pointwise"
_PACKED_PRODUCT = "mkl._mkl_linear"


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
    """Floating-point operations of a fused call; None for others and for symbolic sizes.

    `result` is the fake tensor that the call returns.  Each number of it takes a multiplication and an addition for
    each weight of its channel.
    """
    operator = _operator(leaf)
    name = operator.__name__.partition(".")[0] if operator is not None else None
    if operator is None or name not in _FUSED or name == _TRANSPOSED:
        return None
    tensors = [argument.name for argument in operator._schema.arguments if "Tensor" in str(argument.type)]
    try:
        weight = [int(size) for size in leaf.node.inputs[tensors.index("W")].get_size()]
    except Exception:  # a symbolic size; a form that takes other tensors
        return None
    return _of_weights(result, math.prod(weight[1:]))


def flops_of_product(node: torch.fx.Node) -> int | None:
    """Floating-point operations of a product with a packed weight, of which torch has no formula; None for others."""
    if str(node.target).removesuffix(".default") != _PACKED_PRODUCT:
        return None
    weight = node.args[2].meta.get("val") if isinstance(node.args[2], torch.fx.Node) else None  # as it was given
    return _of_weights(node.meta.get("val"), weight.shape[1]) if isinstance(weight, torch.Tensor) else None


def _of_weights(result: Any, weights: int) -> int | None:
    numbers = result.numel() if isinstance(result, torch.Tensor) else None
    return 2 * numbers * weights if isinstance(numbers, int) and isinstance(weights, int) else None


def _operator(leaf: Any) -> torch._ops.OpOverload | None:
    found = getattr(leaf.node, "op_overload", None)
    return found if isinstance(found, torch._ops.OpOverload) and found.namespace in ("mkldnn", "mkl") else None
