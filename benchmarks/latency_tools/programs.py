"""The workspaces that are edited, and the edits."""

from __future__ import annotations

from pathlib import Path

MANY_FILES = 2000


def numbered(text: str, number: int) -> str:
    """A text with another graph for each number; odd ones also have a break at the top of `forward`."""
    mark = f"        x = x * 1.{number:04d}\n" + (f'        print("pass {number}")\n' if number % 2 else "")
    head, line, tail = text.partition("    def forward(self, x):  # here\n")
    return head + line + mark + tail


def with_anchor(text: str, class_name: str) -> str:
    """A text in which `numbered` finds the `forward` of a class."""
    head, line, tail = text.partition(f"class {class_name}(")
    return head + line + tail.replace("    def forward(self, x):\n", "    def forward(self, x):  # here\n", 1)


FOUR_GRAPHS = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        x = torch.relu(self.parts[0](x))
        print("one")
        x = torch.tanh(self.parts[1](x))
        print("two")
        x = torch.sigmoid(self.parts[2](x)) * SCALE
        print("three")
        return self.parts[3](x).softmax(-1)


def get_inputs():
    return [torch.randn(8, 64)]
"""


def four_graphs(number: int) -> str:
    """A model of four graphs, of which the third is another one for each number."""
    return FOUR_GRAPHS.replace("SCALE", f"{number + 2}.5")


def write_chain(folder: Path) -> None:
    """A model that reaches a constant through three imports."""
    (folder / "far.py").write_text(far(0))
    (folder / "middle.py").write_text("import far\n\n\ndef scale(x):\n    return far.scale(x)\n")
    (folder / "near.py").write_text("import middle\n\n\ndef scale(x):\n    return middle.scale(x)\n")
    (folder / "model.py").write_text(
        "import torch\nfrom torch import nn\n\nimport near\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n        return near.scale(torch.relu(x)).softmax(-1)\n\n\n"
        "def get_inputs():\n    return [torch.randn(8, 64)]\n"
    )


def far(number: int) -> str:
    """The module that is three imports away."""
    return f"def scale(x):\n    return x * {number + 2}.5\n"


def write_many(folder: Path) -> None:
    """A workspace of many files around `write_chain`'s, each of which imports two others."""
    write_chain(folder)
    package = folder / "many"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for number in range(MANY_FILES):
        others = [f"from many import part{(number * factor + 1) % MANY_FILES}" for factor in (2, 3)]
        body = "\n\n".join(f"def f{index}(x):\n    return x + {index}\n" for index in range(10))
        (package / f"part{number}.py").write_text("\n".join(others) + "\n\n\n" + body)
    model = (folder / "model.py").read_text()
    (folder / "model.py").write_text(model.replace("import near\n", "import near\nfrom many import part1  # noqa\n"))
