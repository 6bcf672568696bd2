"""Letters of several bytes before the expression that breaks."""
import torch


def label(x):
    höhe = {"ключ→😀": x.sin()}; größe = höhe["ключ→😀"].sum().item()  # expect: graph-break GB0124 split
    return x * größe


ENTRY = "label"


def get_inputs():
    return [torch.randn(3)]
