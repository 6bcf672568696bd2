"""Values that guards are made of: a closure variable, a default, a global, an attribute of an object, a dictionary."""

import torch

LEVEL = 1


class Settings:
    def __init__(self):
        self.gain = 2


settings = Settings()
table = {"bias": 3}


def make(step):
    def inner(x):
        return helper(x * step) + LEVEL  # expect: recompile; recompile

    def advance():
        nonlocal step
        step = step + "!" if isinstance(step, str) else step * 3

    return inner, advance


def helper(x, power=2):
    y = x * settings.gain  # expect: recompile
    return y**power + table["bias"]  # expect: recompile; recompile


inner, advance = make(2)
ENTRY = "inner"


def exercise(fn):
    global LEVEL
    x = torch.randn(4)
    fn(x)
    LEVEL = 5
    fn(x)
    settings.gain = 7
    fn(x)
    table["bias"] = 9
    fn(x)
    helper.__defaults__ = (3,)
    fn(x)
    advance()
    fn(x)
