"""A function without any tensor in it."""


def add(a, b):  # expect: not-compiled
    return a + b


ENTRY = "add"


def get_inputs():
    return [1, 2]
