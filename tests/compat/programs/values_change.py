"""Plain values change: an attribute of a module, a text, a length; the guards name the lines that made them."""

import torch

BACKEND = "eager"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.names = ["first"]

    def forward(self, x, how):
        if how == "more":
            x = x + len(self.names)
        return x * self.steps


def exercise(fn):
    x = torch.ones(4)
    fn(x, "more")
    fn._orig_mod.steps = 1
    fn(x, "more")
    fn(x, "less")
    fn._orig_mod.names.append("second")
    fn(x, "more")
