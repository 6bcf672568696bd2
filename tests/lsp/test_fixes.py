"""Quick fixes: what they write, and where they keep their hands off."""

from __future__ import annotations

import ast

import pytest

from inductoscope.server.features import fixes
from support.session import Harness, found

PATH = "/w/model.py"


def program(statement: str, imports: str = "import torch") -> str:
    body = statement.replace("\n", "\n                ")
    return f"""
        {imports}

        class Model(torch.nn.Module):
            def forward(self, x):
                {body}
                return x

        def get_inputs():
            return [torch.ones(2)]
    """


async def fixed(text: str, line_of: str) -> list[str]:
    """The text after each fix that is offered for a break at the line that holds `line_of`."""
    h = Harness()
    fixture = h.open(text)
    lines = fixture.source.split("\n")
    number = next(number for number, line in enumerate(lines, start=1) if line_of in line)
    (await h.runner.next()).finish(found(number, "broken"))
    snapshot = await h.settled()
    results = []
    for fix in fixes.fixes(snapshot, PATH, number, number):
        after = [*lines[: fix.line - 1], *fix.text.removesuffix("\n").split("\n"), *lines[fix.end_line - 1 :]]
        ast.parse("\n".join(after))
        results.append("\n".join(after))
    return results


@pytest.mark.parametrize(
    "statement",
    ["print(x)", "print(x)  # why", "logger.info('%s', x)", "logging.warning('é %s', x)", "warnings.warn('slow')"],
)
async def test_a_statement_that_only_tells_is_left_to_the_uncompiled_program(statement: str) -> None:
    (text,) = await fixed(program(statement), statement)
    assert f"        if not torch.compiler.is_compiling():\n            {statement}\n        return x" in text


async def test_a_statement_over_several_lines_moves_as_a_whole() -> None:
    (text,) = await fixed(program("print(\n    x,\n\n    1,\n)"), "print(")
    assert "is_compiling():\n            print(\n" in text and "1,\n            )\n        return x" in text


@pytest.mark.parametrize(
    ("statement", "imports"),
    [
        ("y = print(x)", "import torch"),
        ("x = x.cpu(); print(x)", "import torch"),
        ("print(x); x = x.cpu()", "import torch"),
        ("print('''a\nb''')", "import torch"),
        ("self.log(x)", "import torch"),
        ("x.tolist()", "import torch"),
        ("print(x)", "import torch as th; from torch import *; torch_ = th"),
    ],
)
async def test_anything_else_is_left_alone(statement: str, imports: str) -> None:
    text = program(statement, imports)
    assert await fixed(text, statement.split("\n", maxsplit=1)[0]) == []


async def test_the_comment_for_inputs_goes_above_the_decorators() -> None:
    h = Harness()
    fixture = h.open("import torch\n\n\n@torch.compile\ndef f(x, y):  # <f>\n    return x + y\n")
    snapshot = await h.settled()
    (fix,) = fixes.fixes(snapshot, PATH, fixture["f"], fixture["f"])
    assert (fix.line, fix.end_line) == (4, 4)
    assert fix.text.startswith("# inductoscope: ") and fix.text.endswith("\n")
