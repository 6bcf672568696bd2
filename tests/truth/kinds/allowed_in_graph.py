"""allow_in_graph and substitute_in_graph: what Dynamo does not look into, and what stands in for a C function."""

import operator

import torch

ENTRY = "run"


@torch.compiler.allow_in_graph
def mystery(x):
    if x.dim() == 1:
        return x.sinh()
    return x.cosh()


@torch.compiler.substitute_in_graph(operator.length_hint, can_constant_fold_through=False)
def hint(obj, default=0, /):
    return len(obj)


def run(x, items):
    return mystery(x) * operator.length_hint(items)


def get_input_sets():
    return [(torch.randn(4), [1, 2]), (torch.randn(4), [1, 2, 3])]
