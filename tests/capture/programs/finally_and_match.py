"""A break under finally, and one in a match statement."""
import torch


def route(x, kind):
    try:
        x = x * 2
        print("in try")  # expect: graph-break GB0059 whole x2
    finally:
        x = x + 1
    return x


def chosen(x, kind):
    x = route(x, kind)
    match kind:
        case {"name": name} if x.sum() > 0:  # expect: graph-break GB0170 split
            return x, name
        case _:
            return x * 3, None


ENTRY = "chosen"


def get_inputs():
    return [torch.ones(3), {"name": "a"}]
