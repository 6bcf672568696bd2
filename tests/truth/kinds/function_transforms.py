"""vmap, grad, jvp and functional_call, one with a break inside."""

import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

ENTRY = "run"
BACKEND = "eager"
net = nn.Linear(3, 1)


def loss(params, x):
    return functional_call(net, params, (x,)).pow(2).sum()


def noisy(x):
    print("in vmap")
    return x.sin()


def run(params, x):
    per_sample = vmap(grad(loss), in_dims=(None, 0))(params, x)
    _, tangent = jvp(torch.sin, (x,), (torch.ones_like(x),))
    y = vmap(noisy)(x)
    return per_sample["weight"].sum() + tangent.sum() + y.sum()


def exercise(fn):
    params = {name: value.detach() for name, value in net.named_parameters()}
    fn(params, torch.randn(4, 3))
