"""What each fix makes of a text, on made-up findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

import pytest

from inductoscope.server.features.fixes.facts import Facts
from support.fixing import finding_at, offered, reasons, rewritten

X_IS_TENSOR = Facts(
    arguments=(("f", frozenset({0, 1}), frozenset()), ("Model.forward", frozenset({0, 1}), frozenset()))
)
STATED = "a size that depends on data"  # may be stated as often as one likes
SCALARS = "Set `torch._dynamo.config.capture_scalar_outputs = True` or `export TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1`."
INTS = "you might want to make this integer dynamic using torch._dynamo.config.allow_unspec_int_on_nn_module"


@dataclass(frozen=True)
class Row:
    """`before` with the finding at `marked` becomes `after` by the fix whose title holds `title`."""

    name: str
    title: str
    before: str
    marked: str
    after: str
    finding: dict[str, Any] = field(default_factory=dict)


def head(text: str) -> str:
    return "import torch\n\n" + dedent(text)


ROWS = (
    Row(
        "where",
        "torch.where",
        head("""
            def f(x):
                if x.sum() > 0:  # a reason
                    # why so
                    y = x + 1
                else:
                    y = x - 1  # otherwise
                return y
        """),
        "x.sum() > 0",
        head("""
            def f(x):
                # a reason
                # why so
                # otherwise
                y = torch.where(x.sum() > 0, x + 1, x - 1)
                return y
        """),
    ),
    Row(
        "where keeps layout of long values and calls torch as the file does",
        "torch.where",
        dedent("""\
            import torch as th

            async def f(x):
                if (
                    x.sum()
                    > 0
                ):
                    return th.cat(
                        [x, x],  # twice
                    )
                return x.é * 2
        """),
        "x.sum()\n        > 0",
        dedent("""\
            import torch as th

            async def f(x):
                return th.where(x.sum()
                    > 0, th.cat(
                        [x, x],  # twice
                    ), x.é * 2)
        """),
    ),
    Row(
        "cond",
        "torch.cond",
        head("""
            def f(x):
                if x.abs().max() > 10:
                    x = x / 10
                return x
        """),
        "x.abs().max() > 10",
        head("""
            def f(x):
                x = torch.cond(x.abs().max() > 10, lambda: x / 10, lambda: x.clone())
                return x
        """),
    ),
    Row(
        "two names share a condition",
        "torch.where",
        head("""
            def f(x, condition):
                a, b = x, x
                if not (x > 0).all():
                    a = x + 1
                    b = x * 2
                return a + b
        """),
        "(x > 0).all()",
        head("""
            def f(x, condition):
                a, b = x, x
                condition_2 = torch.logical_not((x > 0).all())
                a = torch.where(condition_2, x + 1, a)
                b = torch.where(condition_2, x * 2, b)
                return a + b
        """),
    ),
    Row(
        "on one line",
        "torch.where",
        head("def f(x):\n    y = x\n    if x.any(): y = x + 1  # up\n    return y\n"),
        "x.any()",
        head("def f(x):\n    y = x\n    # up\n    y = torch.where(x.any(), x + 1, y)\n    return y\n"),
    ),
    Row(
        "a conditional expression",
        "torch.where",
        head("def f(x):\n    return g(x + 1 if x.any() else -x, 2)\n"),
        "x.any()",
        head("def f(x):\n    return g(torch.where(x.any(), x + 1, -x), 2)\n"),
    ),
    Row(
        "a raise",
        "torch._assert_async",
        head("def f(x):\n    if x.isnan().any():  # never\n        raise ValueError(f'bad {x.shape}')\n    return x\n"),
        "x.isnan().any()",
        head(
            'def f(x):\n    # never\n    torch._assert_async(torch.logical_not(x.isnan().any()), "bad {x.shape}")\n'
            "    return x\n"
        ),
    ),
    Row(
        "an item",
        "keep the tensor",
        head("def f(x):\n    peak = x.max().item()  # peak\n    return x / max(peak, 1e-3)\n"),
        "x.max().item()",
        head("def f(x):\n    peak = x.max().detach()  # peak\n    return x / max(peak, 1e-3)\n"),
    ),
    Row(
        "a setting, below the imports",
        "capture_scalar_outputs",
        '"""Doc."""\n\nfrom __future__ import annotations\n\nimport os\nimport torch\n\n\ndef f(x):\n'
        "    return x[: int(x[0])]\n",
        "int(x[0])",
        '"""Doc."""\n\nfrom __future__ import annotations\n\nimport os\nimport torch\n\n'
        "torch._dynamo.config.capture_scalar_outputs = True\n\n\ndef f(x):\n    return x[: int(x[0])]\n",
        {"hints": (SCALARS,)},
    ),
    Row(
        "an import where there is none",
        "only when not compiled",
        '"""Doc."""\nfrom __future__ import annotations\n\ndef f(x):\n    print(x)\n    return x\n',
        "print(x)",
        '"""Doc."""\nfrom __future__ import annotations\nimport torch\n\ndef f(x):\n'
        "    if not torch.compiler.is_compiling():\n        print(x)\n    return x\n",
    ),
    Row(
        "an import above others",
        "only when not compiled",
        "# licence\nfrom torch import nn\n\ndef f(x):\n    print(x)\n",
        "print(x)",
        "# licence\nimport torch\nfrom torch import nn\n\ndef f(x):\n    if not torch.compiler.is_compiling():\n"
        "        print(x)\n",
    ),
    Row(
        "tabs and CRLF and a byte-order mark",
        "only when not compiled",
        "\ufeffimport torch\r\n\r\nclass M:\r\n\tdef f(self, x):\r\n\t\tself.logger.info(\r\n"
        "\t\t\t'ü𝄞', x)  # é\r\n\t\treturn x\r\n",
        "self.logger.info(\r\n\t\t\t'ü𝄞', x)",
        "\ufeffimport torch\r\n\r\nclass M:\r\n\tdef f(self, x):\r\n\t\tif not torch.compiler.is_compiling():\r\n"
        "\t\t\tself.logger.info(\r\n\t\t\t\t'ü𝄞', x)  # é\r\n\t\treturn x\r\n",
    ),
    Row(
        "a setting and the import that it needs",
        "after the compiled part has run",
        "# licence\ndef f(x):\n    print(x)\n",
        "print(x)",
        "import torch\ntorch._dynamo.config.reorderable_logging_functions.add(print)\n"
        "# licence\ndef f(x):\n    print(x)\n",
    ),
    Row(
        "an import below what has to come first",
        "do this only",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# inductoscope: x=f32[2]\ndef f(x):\n    print(x)\n",
        "print(x)",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nimport torch\n# inductoscope: x=f32[2]\ndef f(x):\n"
        "    if not torch.compiler.is_compiling():\n        print(x)\n",
    ),
    Row(
        "a setting below imports that share a line",
        "capture_scalar_outputs",
        "import os; import torch; A = 1\ndef f(x):\n    return x[: int(x[0])]\n",
        "int(x[0])",
        "import os; import torch; A = 1\n\ntorch._dynamo.config.capture_scalar_outputs = True\n"
        "def f(x):\n    return x[: int(x[0])]\n",
        {"hints": (SCALARS,)},
    ),
    Row(
        "leaving a logger out everywhere",
        "every call of log.info",
        "import logging\nimport torch\n\nlog = logging.getLogger('a')\n\ndef f(x):\n    log.info('x')\n    return x\n",
        "log.info('x')",
        "import logging\nimport torch\n\nlog = logging.getLogger('a')\n"
        "torch._dynamo.config.ignore_logging_functions.add(log.info)\n\ndef f(x):\n    log.info('x')\n    return x\n",
    ),
    Row(
        "a graph break that is asked for, alone in its block",
        "Remove the graph break",
        head("def f(x):\n    if True:\n        torch._dynamo.graph_break()  # here\n    return x\n"),
        "torch._dynamo.graph_break()",
        head("def f(x):\n    if True:\n        pass  # here\n    return x\n"),
    ),
    Row(
        "a graph break that is asked for keeps its comment",
        "Remove the graph break",
        head("def f(x):\n    torch._dynamo.graph_break()  # here\n    return x\n"),
        "torch._dynamo.graph_break()",
        head("def f(x):\n    # here\n    return x\n"),
    ),
    Row(
        "an assertion",
        "assert on a tensor",
        head(
            "def f(x):\n    assert not (x > 1).any() and x.sum().item() < 5, f'got {x.shape}'  # sane\n    return x\n"
        ),
        "not (x > 1).any() and x.sum().item() < 5",
        head(
            "def f(x):\n"
            '    assert torch.logical_and(torch.logical_not((x > 1).any()), x.sum() < 5), "got {x.shape}"  # sane\n'
            "    return x\n"
        ),
    ),
    Row(
        "a deep copy",
        ".detach().clone()",
        "import copy\nimport torch\n\ndef f(x):\n    return g(copy.deepcopy(x + 1))\n",
        "copy.deepcopy(x + 1)",
        "import copy\nimport torch\n\ndef f(x):\n    return g((x + 1).detach().clone())\n",
    ),
    Row(
        "a frozen layer",
        "end of `__init__`",
        head("""
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.a = torch.nn.Linear(2, 2)

                def forward(self, x):
                    for p in self.a.parameters():
                        p.requires_grad = False  # frozen
                    return self.a(x)
        """),
        "p.requires_grad",
        head("""
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.a = torch.nn.Linear(2, 2)
                    for p in self.a.parameters():
                        p.requires_grad = False  # frozen

                def forward(self, x):
                    return self.a(x)
        """),
    ),
    Row(
        "numpy in the middle",
        "instead of NumPy",
        "import numpy as np\nimport torch\n\ndef f(x):\n"
        "    return torch.from_numpy(np.clip(np.exp(x.detach().cpu().numpy()), 0, 1)) + 1\n",
        "np.exp(x.detach().cpu().numpy())",
        "import numpy as np\nimport torch\n\ndef f(x):\n    return torch.clip(torch.exp(x.detach()), 0, 1) + 1\n",
    ),
    Row(
        "clocks",
        "measure no time",
        "import time\nimport torch\n\ndef f(x):\n    t = time.time()\n    x = x + 1\n    return x, time.time() - t\n",
        "time.time()",
        "import time\nimport torch\n\ndef f(x):\n    t = 0.0 if torch.compiler.is_compiling() else time.time()\n"
        "    x = x + 1\n"
        "    return x, (0.0 if torch.compiler.is_compiling() else time.time()) - t\n",
    ),
    Row(
        "a seed",
        "seed only when not compiled",
        head("def f(x):\n    torch.manual_seed(3)\n    return x + torch.rand(2)\n"),
        "torch.manual_seed(3)",
        head(
            "def f(x):\n    if not torch.compiler.is_compiling():\n        torch.manual_seed(3)\n"
            "    return x + torch.rand(2)\n"
        ),
    ),
    Row(
        "a context",
        "enter this only when not compiled",
        "import torch\nimport contextlib\n\ndef f(x):\n    with torch.no_grad(), lock():  # both\n        return x\n",
        "lock()",
        "import torch\nimport contextlib\n\ndef f(x):\n"
        "    with torch.no_grad(), contextlib.nullcontext() if torch.compiler.is_compiling() else lock():  # both\n"
        "        return x\n",
    ),
    Row(
        "a mask that sums",
        "add up over all",
        head("def f(x):\n    keep = x > 0\n    return x[keep].sum() + 1\n"),
        "x[keep]",
        head("def f(x):\n    keep = x > 0\n    return torch.where(keep, x, 0).sum() + 1\n"),
    ),
    Row(
        "a mask that is assigned under",
        "choose with torch.where",
        head("def f(x):\n    y = x * 1\n    y[x > 0] = x[x > 0] + y[x > 0]  # up\n    return y\n"),
        "x[x > 0] + y[x > 0]",
        head("def f(x):\n    y = x * 1\n    y = torch.where(x > 0, x + y, y)  # up\n    return y\n"),
    ),
    Row(
        STATED,
        "state that n > 0",
        head("def f(x):\n    n = x.sum().item()\n    if n > 0:\n        return x[:n]\n    return x\n"),
        "n > 0",
        head(
            "def f(x):\n    n = x.sum().item()\n    torch._check(n > 0)\n    if n > 0:\n        return x[:n]\n"
            "    return x\n"
        ),
    ),
    Row(
        "a counter",
        "keep `self.step` in a tensor",
        head("""
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.step = 3  # from here

                def forward(self, x):
                    self.step += 1
                    return x * self.step
        """),
        "self.step += 1",
        head("""
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer("step", torch.tensor(3), persistent=False)  # from here

                def forward(self, x):
                    self.step += 1
                    return x * self.step
        """),
        {"code": "recompile", "guard_family": "self.step == N", "hints": (INTS,)},
    ),
    Row(
        "changing sizes",
        "dynamic=True",
        head("@torch.compile(\n    mode='default',\n)\ndef f(x):\n    return x\n"),
        "def f(x):",
        head("@torch.compile(\n    mode='default', dynamic=True,\n)\ndef f(x):\n    return x\n"),
        {
            "code": "recompile",
            "message": "the guard `tensor 'x' size mismatch at index 0. expected 3, actual 4` failed",
        },
    ),
    Row(
        "changing sizes at the call",
        "Mark dimension 1 of `x`",
        head(
            "def f(x):\n    return x\n\ng = torch.compile(f)\n\ndef main(a):\n    for _ in range(3):\n"
            "        y = g(a)\n"
        ),
        "def f(x):",
        head(
            "def f(x):\n    return x\n\ng = torch.compile(f)\n\ndef main(a):\n    for _ in range(3):\n"
            "        torch._dynamo.maybe_mark_dynamic(a, 1)\n        y = g(a)\n"
        ),
        {
            "code": "recompile",
            "message": "the guard `tensor 'x' size mismatch at index 1. expected 3, actual 4` failed",
        },
    ),
    Row(
        "a fraction among the arguments",
        "pass `rate` as a tensor",
        head("@torch.compile\ndef f(x, rate):\n    return x * rate\n\ndef main(x):\n    f(x, rate=0.1 * 2)\n"),
        "return x * rate",
        head(
            "@torch.compile\ndef f(x, rate):\n    return x * rate\n\ndef main(x):\n"
            "    f(x, rate=torch.tensor(0.1 * 2))\n"
        ),
        {"code": "recompile", "guard_family": "rate == N", "message": "the guard `rate == 0.1` failed (now 0.2)."},
    ),
    Row(
        "a call into a library",
        "once, when the file is imported",
        "import os\nimport torch\n\ndef f(x):\n    if os.path.exists('a'):\n        x = x + 1\n    return x\n",
        "os.path.exists('a')",
        "import os\nimport torch\n\n_OS_PATH_EXISTS = os.path.exists('a')\n\ndef f(x):\n    if _OS_PATH_EXISTS:\n"
        "        x = x + 1\n"
        "    return x\n",
    ),
    Row(
        "the last line has no end",
        "only when not compiled",
        "import torch\n\ndef f(x):\n    x = x + 1\n    print(x)",
        "print(x)",
        "import torch\n\ndef f(x):\n    x = x + 1\n    if not torch.compiler.is_compiling():\n        print(x)",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_fix_writes_exactly_this(row: Row) -> None:
    finding = finding_at(row.before, row.marked, **row.finding)
    assert rewritten(row.before, finding, row.title, X_IS_TENSOR) == row.after


@pytest.mark.parametrize("row", [row for row in ROWS if row.name != STATED], ids=lambda row: row.name)
def test_once_done_it_is_not_offered_again(row: Row) -> None:
    again = finding_at(row.after if row.marked in row.after else row.before, row.marked, **row.finding)
    titles = [item.title for _, item in offered(row.after, again, X_IS_TENSOR) if item.disabled is None]
    assert not [title for title in titles if row.title in title]


@pytest.mark.parametrize(
    ("text", "marked", "reason"),
    [
        ("return f'{x if x.any() else -x}'", "x.any()", "inside of a formatted text"),
        ("while x.sum() > 0:\n    x = x - 1\nreturn x", "x.sum() > 0", "torch.while_loop"),
        ("if x.sum() > 0:\n    x.add_(1)\nreturn x", "x.sum() > 0", "more than to assign"),
        ("if x.sum() > 0:\n    y = x\nreturn y", "x.sum() > 0", "`y` has no value"),
        ("if x.sum() > 0:\n    return x\nx = x + 1\nreturn x", "x.sum() > 0", "Only one branch returns"),
        ("y = None\nif x.sum() > 0:\n    y = 'a'\nelse:\n    y = 'b'\nreturn x", "x.sum() > 0", "is no tensor"),
        ("n = 1\nif x.sum() > 0:\n    n = 2\nelse:\n    n = 3\nreturn x * n", "x.sum() > 0", "are numbers"),
        ("if x.sum() > 0:\n    x += 1\nreturn x", "x.sum() > 0", "belongs to the caller"),
        ("a = b = x\nif x.any():\n    a = b\n    b = a\nreturn a", "x.any()", "depends on"),
        ("if self.flag and x.sum() > 0:\n    x = x + 1\nreturn x", "x.sum() > 0", "`self.flag` is not known"),
        ("y = x\nif x.all():\n    y = x + 1\nelif x.any():\n    y = x - 1\nreturn y", "x.any()", "`elif`"),
        ("y = x\nif x.any():\n    y = g(x.add_(1))\nreturn y", "x.any()", "in place"),
        ("n = x.max().item()\nreturn x[:n]", "x.max().item()", "bound of a slice in line 5"),
        ("n = x.max().item()\nm = n * self.stride\nreturn x[:m]", "x.max().item()", "bound of a slice in line 6"),
        ("n = x.max().item()\nreturn torch.zeros(n)", "x.max().item()", "`zeros` in line 5 needs a number"),
        ("n = x.max().item()\nreturn x, n", "x.max().item()", "returned to the caller"),
        ("n = x.max().item()\nself.peak = n\nreturn x", "x.max().item()", "kept outside"),
        ("n = x.max().item()\nseen.append(n)\nreturn x", "x.max().item()", "needs a number"),
        ("n = x.max().item()\nif n > 3:\n    x = x + 1\nreturn x", "x.max().item()", "decides a branch in line 5"),
        ("y = copy.deepcopy(layer)\nreturn y(x)", "copy.deepcopy(layer)", "not known to be a tensor"),
        ("x.requires_grad_()\nreturn x", "x.requires_grad_()", "`x` belongs to this call"),
        ("return torch.from_numpy(np.unwrap(x.numpy()))", "np.unwrap(x.numpy())", "no counterpart"),
        ("y = np.exp(x.numpy())\nreturn y", "np.exp(x.numpy())", "goes on as a NumPy array"),
        ("y = np.array([1, 2]) // 2\nreturn x + y", "np.array([1, 2])", "has no counterpart"),
        ("y = np.max(x.numpy(), 0, 1) + 1\nreturn x + y", "np.max(x.numpy(), 0, 1)", "more by place"),
        ("if not x.any():\n    x = None\nreturn x", "x.any()", "`None` is no tensor"),
        ("n = 1\nif x.any():\n    n = 2\nreturn x * n", "x.any()", "are numbers"),
        ("pad = x.shape[0] % n != 0 and n > 1\nif pad:\n    x = x + 1\nreturn x", "pad:", "not known to be a tensor"),
        ("flag = not n\nif flag:\n    x = x + 1\nreturn x", "flag:", "is no tensor"),
        ("y = x[x > 0]\nreturn y * 2", "x[x > 0]", "depends on data"),
        ("x[x > 0] = x[x > 0] + 1\nreturn x", "x[x > 0] + 1", "belongs to the caller"),
        ("with open('a') as file:\n    file.write('b')\nreturn x", "open('a')", "do this outside"),
        ("k = json.loads(x.name)\nreturn x * k", "json.loads(x.name)", "torch.library.custom_op"),
        ("x = x + 1; print(x)\nreturn x", "print(x)", "a line of its own"),
    ],
)
def test_what_cannot_be_rewritten_says_why(text: str, marked: str, reason: str) -> None:
    body = text.replace("\n", "\n    ")
    before = f"import copy, json\nimport torch, numpy as np\ndef f(x):\n    {body}\n"
    found = reasons(before, finding_at(before, marked), X_IS_TENSOR)
    assert [item for item in found if reason in item], found


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("is_set = x.any().item()\n    return g(x, is_set)", "true or false"),
        ("is_set = (x > 0).item()\n    return g(x, is_set)", "true or false"),
        ("n = x.max().item()\n    y = g(n) if n > 2 else x\n    return y", "decides a branch in line 4"),
    ],
)
def test_numbers_are_not_traced_where_a_branch_would_break_the_graph_instead(body: str, reason: str) -> None:
    text = f"import torch\ndef f(x):\n    {body}\n"
    marked = text[text.index("= ") + 2 : text.index("item()") + len("item()")]
    found = reasons(text, finding_at(text, marked, hints=(SCALARS,)), X_IS_TENSOR)
    assert [item for item in found if reason in item], found


def test_a_text_over_several_lines_is_not_indented() -> None:
    before = "import torch\ndef f(x):\n    print('''a\nb''')\n    return x\n"
    (reason,) = reasons(before, finding_at(before, "print('''a\nb''')"))
    assert "several lines" in reason


@pytest.mark.parametrize(
    ("statement", "marked"),
    [
        ("y = print(x)", "print(x)"),
        ("self.log(x)", "self.log(x)"),
        ("y = self.inner(x)", "self.inner(x)"),
        ("for i in range(n): x = x + i", "range(n)"),
        ("y = x.tolist()", "x.tolist()"),
        ("self.graph_break()", "self.graph_break()"),
        ("import os; y = os.path.exists('a')", "os.path.exists('a')"),
    ],
)
def test_what_no_cause_knows_gets_nothing(statement: str, marked: str) -> None:
    before = f"import torch\ndef f(x, n):\n    {statement}\n    return x\n"
    assert offered(before, finding_at(before, marked), X_IS_TENSOR) == []


@pytest.mark.parametrize("kind", ["GB0007", "GB0059", "GB0156"])
def test_a_branch_is_rewritten_only_for_breaks_at_its_condition(kind: str) -> None:
    before = "import torch\ndef f(x):\n    if self.known(x):\n        x = x + 1\n    return x\n"
    assert offered(before, finding_at(before, "self.known(x)", id=kind), X_IS_TENSOR) == []


def test_options_from_elsewhere_are_not_added_to() -> None:
    before = head("@torch.compile(**options)\ndef f(x):\n    return x\n")
    message = "the guard `tensor 'x' size mismatch at index 0. expected 3, actual 4` failed"
    (reason,) = reasons(before, finding_at(before, "def f(x):", "recompile", message=message))
    assert "from elsewhere" in reason
