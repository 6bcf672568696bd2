"""Calls that go over several lines, and a break in a comprehension and in an f-string."""

import torch

ENTRY = "run"


def run(
    x,
):
    y = torch.cat(
        [
            x,
            x.new_full(
                (2,),
                x.sum().item(),
            ),
        ]
    )
    parts = [row.max().item() for row in y.split(3)]
    text = f"{y.mean().item():.2f}"
    return y * len(text) * sum(parts)


def get_inputs():
    return [torch.randn(4)]
