"""A counter in a global dictionary, more often than the limit allows."""
import torch

DYNAMO_CONFIG = {"recompile_limit": 3}
STATE = {"step": 0}


def scale(x):
    STATE["step"] += 1  # expect: recompile x3
    return x * (1 + STATE["step"])


def run(x):  # expect: recompile-limit
    return scale(x).sum()


ENTRY = "run"


def get_input_sets():
    return [(torch.randn(3),) for _ in range(6)]
