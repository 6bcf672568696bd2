"""Private parts of torch are touched in one package only, and in the simulated GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

COMPILER = Path(__file__).parents[2] / "compiler" / "inductoscope" / "compiler"
MAY_TOUCH = {"compat", "simgpu"}
FILES = [path for path in COMPILER.rglob("*.py") if path.relative_to(COMPILER).parts[0] not in MAY_TOUCH]


def private_names(source: str) -> list[str]:
    """Everything below `torch` that a text names and whose name begins with one underscore."""
    return [name for name in _names(ast.parse(source)) if _is_private(name)]


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def _is_private(name: str) -> bool:
    first, *parts = name.split(".")
    return first == "torch" and any(part.startswith("_") and not part.startswith("__") for part in parts)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("torch._dynamo.config", ["torch._dynamo.config", "torch._dynamo"]),
        ("import torch._inductor.ir", ["torch._inductor.ir"]),
        ("from torch.fx import _symbolic_trace", ["torch.fx._symbolic_trace"]),
        ("importlib.import_module('torch._C')", ["torch._C"]),
        ("torch.__version__, torch.fx.Node, other._torch", []),
    ],
)
def test_private_names_are_seen(source: str, found: list[str]) -> None:
    assert private_names(source) == found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(COMPILER)))
def test_nothing_else_touches_private_parts(path: Path) -> None:
    assert private_names(path.read_text()) == []
