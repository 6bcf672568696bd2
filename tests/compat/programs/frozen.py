"""A convolution with a normalisation, the weights frozen into the code."""

import torch

COMPILE_KWARGS = {"options": {"freezing": True}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.eval()

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


def exercise(fn):
    with torch.no_grad():
        fn(torch.ones(1, 3, 8, 8))
