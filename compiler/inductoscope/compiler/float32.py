"""What the program lets libraries do with float32: its own settings, as they are while a graph is looked at.

Knows operators by name; which devices have TF32 is no business of this module.
"""

from __future__ import annotations

import re

import torch

_TF32 = "tf32"
_PRODUCT = re.compile(r"(?:^|\.)(?:addmm|baddbmm|bmm|mm)(?:$|\.)")


def may_use_tf32(operator: str) -> bool:
    """Whether a matrix product or convolution on a GPU may round its float32 operands to TF32; False for others."""
    if "convolution" in operator:
        return torch.backends.cudnn.conv.fp32_precision == _TF32
    # The older `allow_tf32` cannot be read once a program has used the newer setting.
    return _PRODUCT.search(operator) is not None and torch.backends.cuda.matmul.fp32_precision == _TF32
