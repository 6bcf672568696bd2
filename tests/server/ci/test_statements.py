"""What a line says, apart from where it is."""

from __future__ import annotations

import pytest

from inductoscope.server.ci.statements import Statement, Statements, shape
from support.fixture import parse

TEXT = parse("""
    import torch  # <import>


    class Model(torch.nn.Module):  # <class>
        @torch.no_grad()  # <decorator>
        def forward(self, x, mask=None):  # <def>
            if x.sum() > 0:  # <if>
                y = torch.where(
                    mask,
                    x,  # <inside>
                    0,
                )
            elif x.max() < 0:  # <elif>
                y = x
            try:  # <try>
                y = y + 1
            except ValueError:
                print("no")  # <handler>
            with torch.autocast("cuda"):  # <with>
                return [z for z in y]  # <return>

    # <between>
""")


@pytest.mark.parametrize(
    ("mark", "scope", "text"),
    [
        ("import", "", "import torch"),
        ("class", "Model", "class Model(torch.nn.Module):"),
        ("decorator", "Model.forward", "def forward(self, x, mask=None):"),
        ("def", "Model.forward", "def forward(self, x, mask=None):"),
        ("if", "Model.forward", "if x.sum() > 0:"),
        ("inside", "Model.forward", "y = torch.where(mask, x, 0)"),
        ("elif", "Model.forward", "if x.max() < 0:"),
        ("try", "Model.forward", "try:"),
        ("handler", "Model.forward", "print('no')"),
        ("with", "Model.forward", "with torch.autocast('cuda'):"),
        ("return", "Model.forward", "return [z for z in y]"),
        ("between", "", "# <between>"),
    ],
)
def test_the_innermost_statement_by_its_head(mark: str, scope: str, text: str) -> None:
    assert Statements(TEXT.source).at(TEXT[mark]) == Statement(scope, text)


@pytest.mark.parametrize("text", ["def f(:\n    x  =  1\n", "\0", "if x\n  x  =  1\n"])
def test_a_file_that_is_no_python_has_lines(text: str) -> None:
    statements = Statements(text)
    assert [statements.at(line).scope for line in (1, 2, 3, 99)] == [""] * 4
    assert statements.at(99).text == ""
    assert "  " not in statements.at(2).text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("y = torch.where(mask, x, 0)", "out = torch.where(m, inputs, 0)", True),
        ("y = torch.where(mask, x, 0)", "y = torch.clamp(mask, x, 0)", False),
        ("print(x)", "print(y)", True),
        ("print(x)", "log(x)", False),
        ("if x.sum() > 0:", "if y.sum() > 0:", True),
        ("if x.sum() > 0:", "if x.sum() > 1:", False),
        ("return x", "yield x", False),
        ("x = 'a", "x = 'a", True),
    ],
)
def test_a_shape_leaves_out_what_variables_are_called(one: str, other: str, same: bool) -> None:
    assert (shape(one) == shape(other)) is same
