"""An expression over several lines, with the break in the middle of it."""
import torch


def scale(x):
    y = torch.mul(
        x.relu(),
        float(  # expect: graph-break GB0124 split
            x.abs()
            .max()
        ),
    )
    return y + 1


ENTRY = "scale"


def get_inputs():
    return [torch.randn(3)]
