"""What torch itself says of the libraries that its operators call.

Private parts of torch, the same in 2.11 to 2.15:
- `torch._C._select_conv_backend`: which implementation a convolution takes; asked by torch's own shape functions too.
- `leaf.node` of a template's scheduler node is a `*TemplateBuffer` of its kind.
- `torch.distributed.distributed_c10d._resolve_process_group(name)`: the group whose name a collective carries.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

_CONV_ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups")
_CONV_BACKWARD_ARGUMENTS = (
    "grad_output", "input", "weight", "bias_sizes", "stride", "padding", "dilation", "transposed", "output_padding",
    "groups",
)  # fmt: skip


def convolution_backend(node: torch.fx.Node) -> str | None:
    """`Cudnn`, `Mkldnn`, `CudaDepthwise2d`, …: the backend of `aten.convolution` and its backward; None if unknown."""
    backward = "backward" in str(node.target)
    names = _CONV_BACKWARD_ARGUMENTS if backward else _CONV_ARGUMENTS
    try:
        args = torch.fx.node.map_arg(node.args, lambda source: source.meta["val"])
        given = dict(zip(names, args, strict=False))
        sizes = {"bias_sizes": given.get("bias_sizes")} if backward else {}
        options = {name: given[name] for name in names if name in _CONV_ARGUMENTS[3:]}
        value, weight = given["input"], given["weight"]
        with value.fake_mode:
            found = torch._C._select_conv_backend(value, weight, bias=given.get("bias"), **options, **sizes)
    except Exception:  # a form of convolution that is not asked about in this way
        return None
    return str(found.name)


def template_kind(leaf: Any) -> str | None:
    """The class of the template behind a scheduler node: `TritonTemplateBuffer`, `CppTemplateBuffer`, …"""
    return type(leaf.node).__name__ if leaf.is_template() else None


def collective_backend(node: torch.fx.Node) -> str | None:
    """The backend (`nccl`, `gloo`) of the process group that a collective runs in, None where it cannot be told."""
    names = [argument for argument in node.args if isinstance(argument, str)]
    try:
        distributed = importlib.import_module("torch.distributed.distributed_c10d")
        group = distributed._resolve_process_group(names[-1])
        return str(distributed.get_backend(group))
    except Exception:  # waiting for a result names no group, and a group may be gone
        return None


def value_of(node: torch.fx.Node | None, position: int) -> torch.Tensor | None:
    """The tensor that a graph node takes as its argument number `position`."""
    argument = node.args[position] if node is not None and len(node.args) >= abs(position) else None
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def tensors_of(node: torch.fx.Node) -> list[torch.Tensor]:
    """What the inputs of a graph node are, as far as they are tensors."""
    values = (source.meta.get("val") for source in node.all_input_nodes)
    return [value for value in values if isinstance(value, torch.Tensor)]
