"""An object with __call__ is what is compiled; a break in it."""

import torch

ENTRY = "target"


class Net:
    def __init__(self):
        self.w = torch.randn(4, 4)
        self.count = 0

    def __call__(self, x):
        self.count += 1
        y = x @ self.w
        print(self.count)
        return y.relu()


target = Net()


def exercise(fn):
    fn(torch.randn(2, 4))
    fn(torch.randn(2, 4))
