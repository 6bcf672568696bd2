"""Small programs that train; what each keeps for its backward pass is known to torch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x):
        h = torch.relu(self.up(x))  # mlp: up
        return self.down(h)


class NormGelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        h = self.norm(x)  # norm
        h = self.inner(h)
        return F.gelu(h) + x  # gelu


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v)  # sdpa


class ConvNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.conv(x)  # conv
        return torch.relu(self.norm(y))


class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        return F.dropout(self.inner(x), 0.5)  # dropout


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 16)

    def block(self, x):
        h = torch.tanh(self.first(x))  # inside: tanh
        return torch.sigmoid(self.second(h))  # inside: sigmoid

    def forward(self, x):
        x = x.sin()  # outside
        return checkpoint(self.block, x, use_reentrant=False) * 2


class CheckpointedDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def block(self, x):
        return F.dropout(torch.sigmoid(self.inner(x)), 0.5)  # inside: dropout

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False).sin()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()  # own forward
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y * 2


class OwnFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        return Doubled.apply(self.inner(x))


class UsedTwice(nn.Module):
    """One value that gets a gradient from two sides, and a loss."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        h = self.inner(x).tanh()  # used twice
        y = h.sin() * h  # both uses
        return F.mse_loss(y, x)  # loss


class KeepsViews(nn.Module):
    """A transposed weight, and a slice of an input."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x):
        return (x @ self.weight.t()).sin() * x[:, :1].cos()


class Wide(nn.Module):
    """Sizes that are only known as symbols."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        h = self.inner(x)
        return h.softmax(0).sum(0) / x.shape[0]


def rows(number):
    return torch.randn(number, 16, requires_grad=True)


PROGRAMS = {
    "mlp": (Mlp, lambda: rows(8)),
    "norm and gelu": (NormGelu, lambda: rows(8)),
    "attention": (Attention, lambda: torch.randn(2, 8, 16, requires_grad=True)),
    "convolution and batch norm": (ConvNorm, lambda: torch.randn(2, 3, 8, 8)),
    "dropout": (Dropout, lambda: rows(8)),
    "checkpointed": (Checkpointed, lambda: rows(8)),
    "checkpointed dropout": (CheckpointedDropout, lambda: rows(8)),
    "own autograd function": (OwnFunction, lambda: rows(8)),
    "used twice": (UsedTwice, lambda: rows(8)),
    "views": (KeepsViews, lambda: rows(8)),
}
