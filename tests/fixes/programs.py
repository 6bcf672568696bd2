"""Small programs with one thing wrong each, the fix that is to be applied, and what has to be gone afterwards."""

from __future__ import annotations

from dataclasses import dataclass

ONES = "def get_input_sets():\n    return [(torch.arange(1.0, 7.0),), (-torch.arange(1.0, 7.0),)]\n"
LAYER = """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
"""


@dataclass(frozen=True)
class Case:
    """`fix` is in the title; `gone` is the code and torch's id (or the guard's family) of the finding that it answers.

    `left` is how often the finding may still be told; `setup` are lines below the imports.
    """

    name: str
    body: str
    fix: str
    gone: tuple[str, str | None]
    setup: str = ""
    inputs: str = ONES
    left: int = 0

    @property
    def text(self) -> str:
        entry = "" if "class Model" in self.body else 'ENTRY = "f"\n'
        return f"import torch\n{self.setup}\n\n{self.body}\n\n{entry}{self.inputs}"


BRANCH = ("graph-break", "GB0170")
NUMBER = ("graph-break", "GB0124")
SKIPPED = ("graph-break", "GB0007")
MASK = ("graph-break", "GB0036")
WHERE, COND = "with torch.where", "with torch.cond"
CAPTURED = "torch._dynamo.config.capture_scalar_outputs"
EAGER_ONLY = "do this only when not compiled"


def _f(*lines: str) -> str:
    return "\n".join(["def f(x):", *(f"    {line}" for line in lines)])


_BRANCHES = {
    "assigning": _f("if x.sum() > 0:", "    y = x + 1", "else:", "    y = x - 1", "return y * 2"),
    "one_sided": _f("y = x * 2", "if y.abs().max() > 10:", "    y = y / 10", "return y + 1"),
    "returning": _f("if x.sum() > 0:", "    return x + 1", "return x - 1"),
    "two_names": _f("a = x + 1", "b = x", "if x.sum() > 0:", "    a = x * 2", "    b = x * 3", "return a - b"),
    "expression": _f("y = x + 1 if x.sum() > 0 else x - 1", "return y"),
    "several": _f("if (x > 0).all() and not x.sum() > 100:", "    x = x + 1", "return x"),
}

CASES = (
    *(Case(f"{name}_where", body, WHERE, BRANCH) for name, body in _BRANCHES.items()),
    *(Case(f"{name}_cond", _BRANCHES[name], COND, BRANCH) for name in ("one_sided", "returning")),
    Case(
        "raising",
        _f("if torch.isnan(x).any():", "    raise ValueError('nan')", "return x * 2"),
        "torch._assert_async",
        BRANCH,
    ),
    Case(
        "raising_eager",
        _f("if torch.isnan(x).any():", "    raise ValueError('nan')", "return x * 2"),
        "check this only when not compiled",
        BRANCH,
    ),
    Case("reading_branch", _f("if x.sum().item() > 0:", "    x = x + 1", "return x"), WHERE, NUMBER),
    Case("item_setting", _f("s = x.sum().item()", "return x * s"), CAPTURED, NUMBER),
    Case("item_kept", _f("s = x.abs().max().item()", "return x / max(s, 0.5)"), "keep the tensor", NUMBER),
    Case("float_kept", _f("return x * float(x.sum())"), "keep the tensor", NUMBER),
    Case(
        "math_kept",
        _f("return x * math.sqrt(x.square().sum())"),
        "use torch.sqrt",
        ("graph-break", "GB0033"),
        setup="import math",
    ),
    Case("printing", _f("x = x + 1", "print('x', x)", "return x * 2"), EAGER_ONLY, ("graph-break", "GB0059")),
    Case(
        "printing_later",
        _f("x = x + 1", "print('x', x)", "return x * 2"),
        "print after the compiled part",
        ("graph-break", "GB0059"),
    ),
    Case(
        "logging",
        _f("x = x + 1", "log.debug('x %s', x.shape)", "return x * 2"),
        EAGER_ONLY,
        ("graph-break", "GB0291"),
        setup='import logging\n\nlog = logging.getLogger("a")',
    ),
    Case(
        "logging_ignored",
        _f("x = x + 1", "log.debug('x %s', x.shape)", "return x * 2"),
        "leave out every call of log.debug",
        ("graph-break", "GB0291"),
        setup='import logging\n\nlog = logging.getLogger("a")',
    ),
    Case("warning", _f("warnings.warn('x')", "return x * 2"), EAGER_ONLY, SKIPPED, setup="import warnings"),
    Case("collecting", _f("y = x + 1", "gc.collect()", "return y * 2"), EAGER_ONLY, SKIPPED, setup="import gc"),
    Case(
        "asked_for",
        _f("y = x + 1", "torch._dynamo.graph_break()", "return y * 2"),
        "Remove the graph break",
        ("graph-break", "GB0025"),
    ),
    Case(
        "deepcopy",
        _f("y = copy.deepcopy(x)", "return y + 1"),
        ".detach().clone()",
        ("graph-break", "GB4198"),
        setup="import copy",
    ),
    Case(
        "deepcopy_of_module",
        LAYER + "\n    def forward(self, x):\n        layer = copy.deepcopy(self.layer)\n        return layer(x)",
        "copy it once",
        ("graph-break", "GB4198"),
        setup="import copy\n\nfrom torch import nn",
    ),
    Case(
        "learning_rate",
        "weight = torch.ones(3, requires_grad=True)\noptimizer = torch.optim.AdamW([weight], lr=0.01)\n"
        "schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)\n\n\ndef f():\n    optimizer.step()",
        "keep the learning rate in a tensor",
        ("recompile", "self.param_groups[N]['lr'] == N"),
        inputs=(
            "def exercise(fn):\n    for _ in range(4):\n        weight.sum().backward()\n        fn()\n"
            "        schedule.step()\n        optimizer.zero_grad()\n    return weight\n"
        ),
    ),
    Case(
        "frozen_weight",
        LAYER
        + "\n    def forward(self, x):\n        self.layer.weight.requires_grad_(False)\n        return self.layer(x)",
        "at the end of `__init__`",
        ("graph-break", "GB0125"),
        setup="from torch import nn",
    ),
    Case(
        "frozen_layer",
        LAYER + "\n    def forward(self, x):\n        for p in self.layer.parameters():\n"
        "            p.requires_grad = False\n        return self.layer(x)",
        "at the end of `__init__`",
        ("graph-break", "GB0206"),
        setup="from torch import nn",
    ),
    Case(
        "numpy_branch",
        _f("m = np.isnan(x.numpy()).any()", "if m:", "    x = x + 1", "return x"),
        "use torch instead of NumPy",
        ("cache-bypass", None),
        setup="import numpy as np",
    ),
    Case(
        "timer",
        _f("start = time.time()", "y = x.sin()", "print_it = time.time() - start < 0", "return y, print_it"),
        "measure no time when compiled",
        SKIPPED,
        setup="import time",
    ),
    Case("seeding", _f("torch.manual_seed(0)", "return x + torch.rand(6)"), "seed only when not compiled", SKIPPED),
    Case(
        "assert_not",
        _f("assert not torch.isnan(x).any(), f'bad {x.shape}'", "return x * 2"),
        "assert on a tensor",
        BRANCH,
    ),
    Case(
        "assert_both",
        _f("assert (x != 0).all() and x.sum() < 100, 'bad'", "return x * 2"),
        "assert on a tensor",
        BRANCH,
    ),
    Case(
        "assert_close",
        _f("assert torch.allclose(x, x)", "return x * 2"),
        "assert on a tensor",
        ("graph-break", "GB0033"),
    ),
    Case("mask_sum", _f("return x[x > 0].sum()"), "add up over all elements", MASK),
    Case("mask_mean", _f("keep = x.abs() > 2", "return x[x != 9].mean()"), "add up over all elements", MASK),
    Case(
        "mask_set",
        _f("y = x.clone()", "y[x > 0] = x[x > 0] * 2", "return y"),
        "choose with torch.where",
        MASK,
    ),
    Case("mask_setting", _f("return x[torch.nonzero(x > 0)] * 2"), "capture_dynamic_output_shape_ops", MASK),
    Case(
        "size_guard",
        _f("i = torch.nonzero(x != 0)", "if i.shape[0] == 0:", "    return x", "return x[i[:, 0]] + 1"),
        "as false when compiled",
        BRANCH,
        setup="torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    ),
    Case(
        "size_stated",
        _f("y = x[x != 0]", "if y.numel() > 0:", "    return y.mean()", "return x.sum()"),
        "state that y.numel() > 0",
        BRANCH,
        setup="torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    ),
    Case(
        "locked",
        _f("with lock:", "    y = x + 1", "return y * 2"),
        "enter this only when not compiled",
        ("graph-break", "GB0142"),
        setup="import threading\n\nlock = threading.Lock()",
    ),
    Case(
        "silenced",
        _f("with warnings.catch_warnings():", "    warnings.simplefilter('ignore')", "    y = x + 1", "return y * 2"),
        "enter this only when not compiled",
        SKIPPED,
        setup="import warnings",
    ),
    Case(
        "library_call",
        _f("y = x + 1", "if os.path.exists('/no/such/file'):", "    y = y + 2", "return y * 3"),
        "make this call once",
        SKIPPED,
        setup="import os",
    ),
    Case(
        "counter_buffer",
        LAYER.replace("nn.Linear(6, 6)\n", "nn.Linear(6, 6)\n        self.step = 0\n")
        + "\n    def forward(self, x):\n        self.step += 1\n        return self.layer(x) * (self.step / 10)",
        "keep `self.step` in a tensor",
        ("recompile", "self.step == N"),
        setup="from torch import nn",
        inputs="def get_input_sets():\n    return [(torch.ones(2, 6),) for _ in range(4)]\n",
    ),
    Case(
        "counter_setting",
        LAYER.replace("nn.Linear(6, 6)\n", "nn.Linear(6, 6)\n        self.step = 0\n")
        + "\n    def forward(self, x):\n        self.step += 1\n        return self.layer(x) * (self.step / 10)",
        "allow_unspec_int_on_nn_module",
        ("recompile", "self.step == N"),
        setup="from torch import nn",
        inputs="def get_input_sets():\n    return [(torch.ones(2, 6),) for _ in range(4)]\n",
        left=1,
    ),
    Case(
        "sizes_dynamic",
        "@torch.compile(dynamic=False)\n" + _f("return x * 2"),
        "dynamic=True",
        ("recompile", "tensor 'x' size mismatch"),
        inputs="def get_input_sets():\n    return [(torch.ones(n),) for n in (3, 4, 5)]\n",
    ),
    Case(
        "sizes_marked",
        "@torch.compile\n" + _f("return x * 2"),
        "Mark dimension 0 of `x` as changing",
        ("recompile", "tensor 'x' size mismatch"),
        inputs=(
            "def exercise(fn):\n    found = []\n    for n in (3, 4, 5):\n        x = torch.ones(n)\n        y = f(x)\n"
            "        found.append(y)\n    return found\n"
        ),
    ),
    Case(
        "number_argument",
        "@torch.compile\ndef f(x, rate):\n    return x * rate",
        "dynamic=True",
        ("recompile", "rate == N"),
        inputs="def get_input_sets():\n    return [(torch.ones(3), 0.1 * n) for n in (1, 2, 3)]\n",
    ),
    Case(
        "backward",
        "def f(x):\n    y = x * 2\n    y.backward(torch.ones(6))\n    return y.detach()",
        "trace_autograd_ops",
        ("graph-break", "GB0123"),
        inputs="def get_input_sets():\n    return [(torch.ones(6, requires_grad=True),)]\n",
    ),
)
