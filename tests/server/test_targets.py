"""What the scan finds to compile in a file, and what it says about it."""

from __future__ import annotations

import textwrap

import pytest

from inductoscope.protocol.messages import TargetKind
from inductoscope.protocol.report import Severity
from inductoscope.server.targets import InputSource, Scan, scan

MODEL = """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, dim):
            super().__init__()

        @torch.no_grad()
        def forward(self, x):
            return x
"""
GET_INPUTS = """
    def get_inputs():
        return [torch.randn(4)]
"""


def look(*parts: str, wanted: tuple[str, ...] = ()) -> Scan:
    return scan("".join(textwrap.dedent(part) for part in parts).lstrip("\n"), "/project/model.py", wanted)


def summary(result: Scan) -> list[tuple[str, int, str, str, str | None]]:
    return [
        (t.target.name, t.target.line, t.target.kind.value, t.target.entry, t.inputs.value if t.inputs else None)
        for t in result.targets
    ]


def names(result: Scan) -> list[str]:
    return [found.target.name for found in result.targets]


def only_message(result: Scan) -> str:
    (finding,) = result.findings
    return finding.message


# The convention of a model file.


def test_model_class_with_get_inputs() -> None:
    result = look(MODEL, GET_INPUTS)
    assert summary(result) == [("Model.forward", 9, "module-class", "Model", "get_inputs")]
    assert result.targets[0].target.end_line == 10
    assert result.findings == ()


@pytest.mark.parametrize("source", [InputSource.EXERCISE, InputSource.GET_INPUT_SETS, InputSource.GET_INPUTS])
def test_the_functions_that_give_inputs_have_an_order(source: InputSource) -> None:
    order = ["exercise", "get_input_sets", "get_inputs"]
    functions = "".join(f"def {name}(): ...\n" for name in reversed(order[order.index(source.value) :]))
    assert look(MODEL, functions).targets[0].inputs is source


def test_a_variable_named_comment_is_no_source_of_inputs() -> None:
    assert look(MODEL, "comment = 'x'\n").targets == ()


def test_entry_names_a_function() -> None:
    result = look("def f(x): ...\n\ndef g(x): ...\n\ndef get_inputs(): ...\nENTRY = 'g'\n")
    assert summary(result) == [("g", 3, "function", "g", "get_inputs")]


def test_entry_names_an_object_a_class_and_something_that_the_text_does_not_bind() -> None:
    end = "def get_inputs(): ...\n"
    assert summary(look("net = build()\nENTRY = 'net'\n", end)) == [("net", 1, "object", "net", "get_inputs")]
    assert summary(look("class Net: ...\nENTRY = 'Net'\n", end)) == [
        ("Net.forward", 1, "module-class", "Net", "get_inputs")
    ]
    assert summary(look("from lib import *\nENTRY = 'made'\n", end)) == [("made", 2, "object", "made", "get_inputs")]


def test_a_function_without_parameters_that_entry_names_needs_no_inputs() -> None:
    assert look("def step(): ...\nENTRY = 'step'\n").targets[0].inputs is InputSource.NO_ARGUMENTS


def test_an_imported_model_is_a_class() -> None:
    result = look("import torch\nfrom lib import Model\n", GET_INPUTS)
    assert summary(result) == [("Model.forward", 2, "module-class", "Model", "get_inputs")]


def test_forward_inherited_from_a_class_of_the_file_puts_the_target_at_the_class() -> None:
    result = look(
        "from torch import nn\nclass Base(nn.Module):\n    def forward(self, x): ...\n"
        "class Model(Base):\n    pass\ndef get_inputs(): ...\n"
    )
    assert summary(result) == [("Model.forward", 4, "module-class", "Model", "get_inputs")]


def test_a_convention_hides_other_compiled_functions_but_not_commented_ones() -> None:
    more = """
        @torch.compile
        def hidden(x): ...

        # inductoscope: x=f32[4]
        def shown(x): ...
    """
    assert names(look(MODEL, GET_INPUTS, more)) == ["Model.forward", "shown"]


# torch.compile.


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("import torch", "torch.compile"),
        ("import torch", "torch.compile()"),
        ("import torch", "torch.compile(fullgraph=True, mode='max-autotune')"),
        ("import torch as t", "t.compile"),
        ("from torch import compile", "compile"),
        ("from torch import compile as fast", "fast(dynamic=True)"),
        ("import functools, torch", "functools.partial(torch.compile, dynamic=True)"),
        ("import torch\nfrom functools import partial", "partial(torch.compile, dynamic=True)"),
        ("import torch\nfrom functools import partial\nfast = partial(torch.compile, dynamic=True)", "fast"),
    ],
)
def test_every_spelling_of_the_decorator(imports: str, decorator: str) -> None:
    result = look(f"{imports}\n@{decorator}\ndef f(x): ...\n")
    assert names(result) == ["f"]
    assert result.targets[0].target.kind is TargetKind.FUNCTION


@pytest.mark.parametrize("decorator", ["compile", "re.compile('x')", "cache", "torch.no_grad()", "torch.jit.script"])
def test_other_decorators_are_not_taken_for_it(decorator: str) -> None:
    assert look(f"import re, torch\n@{decorator}\ndef f(x): ...\n").targets == ()


def test_decorated_methods() -> None:
    result = look(
        "import torch\nclass Net(torch.nn.Module):\n    @torch.compile\n    def forward(self, x): ...\n"
        "    @torch.compile\n    def step(self, x): ...\n"
    )
    assert summary(result) == [
        ("Net.forward", 4, "module-class", "Net", None),
        ("Net.step", 6, "module-class", "Net.step", None),
    ]


def test_a_compiled_object_of_the_module_is_a_target_of_its_own_name() -> None:
    result = look("import torch\ndef f(x): ...\nfast = torch.compile(f, dynamic=True)\ndef get_inputs(): ...\n")
    assert summary(result) == [("fast", 3, "object", "fast", "get_inputs")]


@pytest.mark.parametrize(
    "call",
    [
        "torch.compile(Net())",
        "torch.compile(Net().to('cuda').eval(), mode='reduce-overhead')",
        "torch.compile(model=Net())",
        "torch.compile(dynamic=True)(Net())",
        "(net := 1, torch.compile(Net().forward))",
        "Net().compile()",
        "use(torch.compile(Net()))",
    ],
)
def test_calls_inside_a_function_lead_to_the_class(call: str) -> None:
    result = look(
        f"import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): ...\ndef main():\n    return {call}\n"
    )
    assert summary(result) == [("Net.forward", 3, "module-class", "Net", None)]


def test_names_are_followed_through_reassignment_and_the_main_guard() -> None:
    result = look(
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x): ...
        def step(x): ...
        if __name__ == "__main__":
            net = Net().cuda()
            net = torch.compile(net)
            run = torch.compile(step)
        """
    )
    assert names(result) == ["Net.forward", "step"]


def test_a_method_compiled_in_the_constructor() -> None:
    result = look(
        """
        import torch
        class Trainer:
            def __init__(self):
                self.fast = torch.compile(self.step)
            def step(self, x): ...
        """
    )
    assert summary(result) == [("Trainer.step", 5, "module-class", "Trainer.step", None)]


def test_what_cannot_be_followed_is_left_alone() -> None:
    result = look(
        """
        import re, torch
        from lib import make
        def main(f, model):
            torch.compile(f); torch.compile(lambda x: x); torch.compile(make()); re.compile("x"); model.compile()
            model.compile("adam", "mse")
            def inner(x): ...
            return torch.compile(inner)
        """
    )
    assert result == Scan((), ())


# Inputs.


def test_compiled_without_inputs_is_one_quiet_hint_that_says_what_to_add() -> None:
    result = look("import torch\n@torch.compile\ndef attend(q, n: int, mask=None): ...\n")
    assert result.targets[0].inputs is None
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("no-inputs", Severity.HINT)
    assert (finding.line, finding.column, finding.end_column) == (3, 4, 10)
    assert finding.hints == ("# inductoscope: q=f32[4, 128], n=8",)
    assert "Nothing says with which inputs to call attend" in finding.message
    assert finding.hints[0] in finding.message


def test_inputs_of_the_module_are_not_guessed_among_several_targets() -> None:
    text = "import torch\n@torch.compile\ndef f(x): ...\n@torch.compile\ndef g(x): ...\ndef get_inputs(): ...\n"
    result = look(text)
    assert [found.inputs for found in result.targets] == [None, None]
    assert "could be for any of several targets" in result.findings[0].message
    asked = look(text, wanted=("g",))
    assert [found.inputs for found in asked.targets] == [None, InputSource.GET_INPUTS]


def test_the_only_outermost_module_gets_the_inputs_of_the_file() -> None:
    blocks = """
        import torch
        from torch import nn
        class Block(nn.Module):
            def forward(self, x): ...
        class Net(nn.Module):
            def __init__(self):
                self.block = Block()
            def forward(self, x): ...
        class Config: ...
    """
    assert names(look(blocks, GET_INPUTS)) == ["Net.forward"]
    assert names(look(blocks)) == []
    assert names(look(blocks, GET_INPUTS, "class Other(nn.Module): ...\n")) == []


def test_the_user_can_ask_for_any_definition() -> None:
    result = look(MODEL, wanted=("Model.forward", "no_such_name"))
    assert summary(result) == [("Model.forward", 9, "module-class", "Model", None)]


# The comment.


@pytest.mark.parametrize(
    "text",
    [
        "# inductoscope: x=f32[4]\ndef f(x): ...\n",
        "# A function.\n# inductoscope: x=f32[4]\n# It is short.\ndef f(x): ...\n",
        "import torch\n# inductoscope: x=f32[4]\n@torch.compile\ndef f(x): ...\n",
        "import torch\n@torch.compile\n# inductoscope: x=f32[4]\ndef f(x): ...\n",
        "def f(x): ...\n# inductoscope: x=f32[4]\nfast = f\n",
        "# inductoscope: x=f32[4]\nclass Net:\n    def forward(self, x): ...\n",
        "class Net:\n    # inductoscope: x=f32[4]\n    def forward(self, x): ...\n",
        "if True:\n    # inductoscope: x=f32[4]\n    def f(x): ...\n",
    ],
)
def test_a_comment_makes_what_stands_below_it_a_target(text: str) -> None:
    result = look(text)
    (found,) = result.targets
    assert (found.target.comment, found.inputs) == ("x=f32[4]", InputSource.COMMENT)
    assert result.findings == ()


def test_a_comment_over_several_lines_is_joined() -> None:
    result = look("# inductoscope: x=f32[4],\n#     y=f32[8]\ndef f(x, y): ...\n")
    assert result.targets[0].target.comment == "x=f32[4],\ny=f32[8]"


def test_the_comment_of_a_function_is_used_by_the_object_compiled_from_it() -> None:
    result = look("import torch\n# inductoscope: x=f32[4]\ndef f(x): ...\nfast = torch.compile(f, dynamic=True)\n")
    assert summary(result) == [("fast", 4, "object", "fast", "comment")]
    assert result.targets[0].target.comment == "x=f32[4]"


def test_a_malformed_comment_is_reported_at_its_column_and_nothing_is_run() -> None:
    result = look("é = 1\n#  inductoscope: x=f32[4], y=f99[2]\ndef f(x, y): ...\n")
    (finding,) = result.findings
    assert (finding.code, finding.line, finding.column) == ("scan-error", 2, 29)
    assert "'f99' is no dtype" in finding.message
    assert result.targets[0].inputs is None


@pytest.mark.parametrize(
    ("signature", "comment", "message"),
    [
        ("f(x)", "x=f32[4], y=f32[4]", "f() has no parameter 'y'; it takes x."),
        ("f(x)", "f32[4], f32[4]", "f() takes at most 1 arguments by position, and 2 are given."),
        ("f(x, y, *, z)", "f32[4], z=1", "The parameter 'y' of f() is not given and has no default."),
    ],
)
def test_a_comment_that_does_not_fit_the_signature(signature: str, comment: str, message: str) -> None:
    assert only_message(look(f"# inductoscope: {comment}\ndef {signature}: ...\n")) == message


@pytest.mark.parametrize("signature", ["f(*args)", "f(x, **rest)", "f(x, y=None, *, z=1)"])
def test_signatures_that_take_more_than_they_name(signature: str) -> None:
    assert look(f"# inductoscope: f32[4]\ndef {signature}: ...\n").findings == ()


def test_a_decorator_that_can_change_the_signature_is_trusted() -> None:
    assert look("import lib\n# inductoscope: y=f32[4]\n@lib.wrap\ndef f(x): ...\n").findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): ...  # inductoscope: x=f32[4]\n",
        "# inductoscope: x=f32[4]\n\ndef f(x): ...\n",
        "def f(x):\n    # inductoscope: x=f32[4]\n    return x\n",
    ],
)
def test_a_comment_that_belongs_to_nothing_is_reported(text: str) -> None:
    assert "belongs to nothing" in only_message(look(text))


def test_a_comment_inside_a_string_is_text() -> None:
    assert look('"""\n# inductoscope: x=f32[4]\n"""\n').findings == ()


# Files that are no Python.


def test_a_syntax_error_is_a_sentence_with_line_and_column() -> None:
    result = look("x = 1\ndef f(:\n")
    (finding,) = result.findings
    assert (finding.code, finding.line, finding.column) == ("scan-error", 2, 6)
    assert finding.message == "Line 2 is not valid Python: invalid syntax (column 7)."


def test_syntax_of_a_later_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inductoscope.server.scanning.syntax.sys.version_info", (3, 10, 0))
    message = only_message(look("try:\n    pass\nexcept* 3x:\n    pass\n"))
    assert "If this is except*, it needs Python 3.11, and Inductoscope runs on 3.10" in message


@pytest.mark.parametrize(
    "text", ["\0", "x = '\0'", "(" * 5000, "-" * 100_000 + "1"], ids=["null", "in", "deep", "long"]
)
def test_texts_that_break_parsers_are_findings(text: str) -> None:
    assert [finding.code for finding in scan(text, "m.py").findings] == ["scan-error"]


@pytest.mark.parametrize("text", ["", "\n", "\ufeffx = 1\n", "# only a comment", "x = 1\x0c\ny = 2\r\nz = 3\r"])
def test_harmless_texts(text: str) -> None:
    assert scan(text, "m.py") == Scan((), ())
