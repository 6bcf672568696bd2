"""A driver that knows the CPU only, and uses all that a call gives back."""

import torch

BACKEND = "inductor"
ENTRY = "step"


def step(x, weight, history):
    y = (x.clone() * weight).tanh()
    history.append(y)
    x.add_(1)
    return {"y": y, "x": x}


def exercise(fn):
    weight = torch.nn.Parameter(torch.ones(4))
    history = []
    x = torch.zeros(4)
    for _ in range(2):
        result = fn(x, weight, history)
        (result["y"] - torch.ones(4)).pow(2).sum().backward()
    assert result["x"] is x
    assert x.tolist() == [2.0] * 4, x
    assert torch.allclose(history[1], torch.ones(4).tanh()), history
    assert weight.grad is not None and weight.grad.device.type == "cpu"
    assert fn(result["y"].detach(), weight, history)["y"].shape == (4,)
    return float(weight.grad.sum())
