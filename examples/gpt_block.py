"""One block of a GPT, with two habits that cost graphs.

`forward` looks at an activation's size to rescue itself from a spike (the value of a tensor decides which way the
program goes), and a debugging print was left behind two calls deep.  The second input set has longer sequences, so the
block is compiled again.
"""

import torch
import torch.nn.functional as F
from torch import nn


def say(text):
    print(text)  # the forgotten print


def describe(label, x):
    say(f"{label}: {x.dtype} on {x.device}")


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


# inductoscope: x=f32[2, 128, 256]; x=f32[2, 192, 256]
class GPTBlock(nn.Module):
    """Pre-norm attention and MLP, each with a residual."""

    def __init__(self, width=256, heads=4, spike=8.0):
        super().__init__()
        self.spike = spike
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        describe("attention", x)
        rms = x.square().mean().sqrt()
        if rms > self.spike:  # the spike rescue
            x = x * (self.spike / rms)
        return x + self.mlp(self.norm2(x))


if __name__ == "__main__":
    torch.manual_seed(0)
    block = torch.compile(GPTBlock())
    for length in (128, 192):
        y = block(torch.randn(2, length, 256))
        print(f"{length} tokens: {list(y.shape)}, standard deviation {y.std():.3f}")
