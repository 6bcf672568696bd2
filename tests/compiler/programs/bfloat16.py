"""A function of bfloat16, which cards before Ampere have no units for."""

import torch


# inductoscope: x=bf16[64, 64]
@torch.compile
def scaled(x):
    return (x @ x).softmax(-1)
