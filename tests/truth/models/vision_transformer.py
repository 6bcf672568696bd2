"""A vision transformer: patches, a class token, pre-norm blocks, attention maps collected on request."""

import torch
import torch.nn.functional as F
from torch import nn

BACKEND = "inductor"


class Block(nn.Module):
    """Attention and an MLP, each behind a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, maps=None):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        if maps is None:
            y = F.scaled_dot_product_attention(query, key, value)
        else:
            scores = (query @ key.mT / (width // self.heads) ** 0.5).softmax(-1)
            maps.append(scores)
            y = scores @ value
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    """Two blocks over patches of 8 by 8 pixels."""

    def __init__(self, width=32, heads=4, image=32, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, stride=8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (image // 8) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, image, want_maps=False):
        x = self.patches(image).flatten(2).mT
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        maps = [] if want_maps else None
        for block in self.blocks:
            x = block(x, maps)
        return self.head(self.norm(x[:, 0])), maps


def exercise(vit):
    vit.eval()
    with torch.no_grad():
        vit(torch.randn(2, 3, 32, 32))
        vit(torch.randn(3, 3, 32, 32))
        vit(torch.randn(2, 3, 32, 32), want_maps=True)
