"""Functions that Dynamo leaves alone: one without operations on tensors, one that is turned off."""

import torch

ENTRY = "nothing"
BACKEND = "eager"


def nothing(x):
    return x


def get_inputs():
    return (torch.ones(4),)
