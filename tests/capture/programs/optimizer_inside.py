"""torch's optimizers break the graph on purpose, in a function of the library; the rest is compiled by itself."""

import torch

ENTRY = "step"
BACKEND = "eager"

weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)


def step(x):
    weight.grad = x * 2
    optimizer.step()  # expect: graph-break GB0025 split x2
    return weight.detach().sin()


def get_inputs():
    return [torch.randn(4)]
