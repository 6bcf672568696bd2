"""A hook that the standard library calls, from two lines."""
import copy

import torch


class Note:
    def __init__(self, text):
        self.text = text

    def __reduce_ex__(self, protocol):
        print("copying")  # expect: graph-break GB0059 split x2
        return (Note, (self.text,))


note = Note("a")


def twice(x):
    a = copy.copy(note)
    x = x + 1
    b = copy.copy(note)
    return x * len(a.text + b.text)


ENTRY = "twice"


def get_inputs():
    return [torch.randn(3)]
