"""backward() and autograd.grad inside of what is compiled, with an optimizer step."""

import torch
from torch import nn

ENTRY = "step"
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def step(x):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def exercise(fn):
    for _ in range(3):
        fn(torch.randn(4, 3))
