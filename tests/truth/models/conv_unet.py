"""A convolutional U-Net that is called with two image sizes, one of them odd."""

import torch
import torch.nn.functional as F
from torch import nn

BACKEND = "inductor"


def block(inside, outside):
    """Two convolutions at one resolution."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.SiLU(), nn.Conv2d(outside, outside, 1)
    )


class Model(nn.Module):
    """Down twice, up twice, with connections across."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([block(3, 8), block(8, 16)])
        self.middle = block(16, 16)
        self.up = nn.ModuleList([block(32, 8), block(16, 8)])

    def forward(self, x):
        across = []
        for part in self.down:
            x = part(x)
            across.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for part in self.up:
            beside = across.pop()
            x = F.interpolate(x, size=beside.shape[-2:], mode="nearest")
            x = part(torch.cat([x, beside], dim=1))
        return x


def exercise(unet):
    unet.eval()
    with torch.inference_mode():
        for size in (16, 22):
            unet(torch.randn(1, 3, size, size))
