"""A small residual convolution net: convolution, batch norm, ReLU, a skip connection, and a classifier.

Nothing breaks here: one graph from the first convolution to the logits.
"""

import torch
from torch import nn


def conv_bn(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Residual(nn.Module):
    """Two convolutions around a skip connection; the skip is projected when the shape changes."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.first = conv_bn(inputs, outputs, stride)
        self.second = conv_bn(outputs, outputs)
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.first(x))
        y = self.second(y)
        return torch.relu(y + self.skip(x))


class Model(nn.Module):
    """A stem, three residual stages, and a linear classifier."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem = conv_bn(3, 16)
        self.stages = nn.Sequential(Residual(16, 16), Residual(16, 32, stride=2), Residual(32, 64, stride=2))
        self.head = nn.Linear(64, classes)

    def forward(self, images):
        x = torch.relu(self.stem(images))
        x = self.stages(x)
        x = x.mean(dim=(2, 3))
        return self.head(x)


def get_inputs():
    return (torch.randn(4, 3, 32, 32),)


if __name__ == "__main__":
    torch.manual_seed(0)
    logits = torch.compile(Model())(*get_inputs())
    print(f"logits {list(logits.shape)}, largest {logits.max():.3f}")
