import pytest
import torch

from inductoscope.compiler import conventions, resolve
from inductoscope.compiler.failures import RunFailedError
from inductoscope.protocol.messages import Failure, FailureKind
from support.model_text import module, resolved, target

LINEAR = """
class Model(nn.Module):
    def __init__(self, dim, *, bias=True):
        super().__init__()
        self.lin = nn.Linear(dim, dim, bias=bias)

    def forward(self, x):
        return self.lin(x)

    def score(self, x):
        return self.lin(x).sum()

    @staticmethod
    def scale(x):
        return x * 2
"""


def failure(text: str, entry: str = "Model", comment: str | None = None) -> Failure:
    with pytest.raises(RunFailedError) as caught:
        resolved(text, entry, comment)
    assert "Traceback" not in caught.value.failure.message
    return caught.value.failure


@pytest.mark.parametrize(
    ("returned", "bias"),
    [
        ("[4]", True),
        ("(4,)", True),
        ("{'dim': 4, 'bias': False}", False),
        ("[[4], {'bias': False}]", False),
        ("4", True),
    ],
)
def test_a_class_is_built_from_what_get_init_inputs_returns(returned: str, bias: bool) -> None:
    program = resolved(f"{LINEAR}\ndef get_init_inputs():\n    return {returned}\n")
    assert program.obj.lin.weight.shape == (4, 4)
    assert (program.obj.lin.bias is not None) is bias


def test_a_list_that_fits_as_it_is_is_not_taken_apart() -> None:
    text = """
    class Model(nn.Module):
        def __init__(self, sizes, options):
            super().__init__()
            self.given = sizes, options

    def get_init_inputs():
        return [[4, 8], {"a": 1}]
    """
    assert resolved(text).obj.given == ([4, 8], {"a": 1})


def test_a_class_without_parameters_needs_no_init_inputs() -> None:
    assert isinstance(resolved("class Net(nn.Module):\n    pass\n", "Net").obj, torch.nn.Module)


def test_missing_init_inputs_say_what_the_parameters_are() -> None:
    told = failure(LINEAR)
    assert told.kind is FailureKind.BAD_INPUTS
    assert "missing a required argument: 'dim'" in told.message
    assert "(dim, *, bias=True)" in told.message


def test_init_inputs_of_the_model_are_not_for_a_class_with_inputs_of_its_own() -> None:
    block = "\nclass Block(nn.Module):\n    def __init__(self, a):\n        super().__init__()\n"
    text = f"{LINEAR}{block}\ndef get_init_inputs():\n    return [4]\n"
    assert "ENTRY = 'Block'" in failure(text, "Block", comment="f32[4]").message
    assert isinstance(resolved(f"{text}\nENTRY = 'Block'\n", "Block", comment="f32[4]").obj, torch.nn.Module)


def test_an_error_in_the_constructor_is_placed_on_its_line() -> None:
    told = failure("class Model(nn.Module):\n    def __init__(self):\n        nn.Linear('a', 2)\n")
    assert (told.kind, told.place.line) == (FailureKind.RUN, 3)
    assert "Model(…) raises an error of its own at line 3 of model_text.py" in told.message


def test_methods_come_from_an_instance_and_static_methods_from_the_class() -> None:
    text = f"{LINEAR}\ndef get_init_inputs():\n    return [4]\n"
    assert resolved(text, "Model.score").obj(torch.ones(1, 4)).shape == ()
    assert resolved(text, "Model.scale").obj(torch.ones(1)).item() == 2


def test_a_missing_name_is_told_with_the_nearest_one() -> None:
    told = failure("def attention(x):\n    return x\n", "atention")
    assert told.kind is FailureKind.NO_TARGET
    assert "Is attention meant?" in told.message


def test_a_name_that_cannot_be_called_is_no_target() -> None:
    assert failure("size = 3\n", "size").kind is FailureKind.NO_TARGET


@pytest.mark.parametrize(
    "text",
    [
        "f = torch.compile(lambda x: x, backend='eager')",
        "@torch.compile(backend='eager')\ndef f(x):\n    return x",
        "f = torch.compile(nn.Linear(2, 2), backend='eager')",
        "class N(nn.Module):\n    @torch.compile(backend='eager')\n    def forward(self, x): ...\nf = N()",
        "f = nn.Linear(2, 2)\nf.compile(backend='eager')",
    ],
)
def test_what_is_compiled_already_stays_as_it_is(text: str) -> None:
    made = module(text)
    said = conventions.read(made)
    program = resolve.resolve(made, target("f"), said, lambda _: True)
    assert program.is_compiled
    assert resolve.compile_program(program, said, target("f"), lambda _: True) is made.f


def test_a_disabled_function_is_not_compiled_already() -> None:
    assert not resolved("@torch.compiler.disable\ndef f(x):\n    return x\n", "f").is_compiled


def test_anything_else_is_compiled_with_the_arguments_of_the_file() -> None:
    made = module(
        """
        graphs = []
        def BACKEND(graph, inputs):
            graphs.append(graph)
            return graph.forward
        COMPILE_KWARGS = {"fullgraph": True}
        def f(x):
            return x + 1
        """
    )
    said = conventions.read(made)
    fast = resolve.compile_program(
        resolve.resolve(made, target("f"), said, lambda _: True), said, target("f"), lambda _: True
    )
    assert fast(torch.ones(2)).tolist() == [2, 2]
    assert len(made.graphs) == 1


def test_arguments_that_torch_compile_refuses_are_a_sentence() -> None:
    made = module("COMPILE_KWARGS = {'mode': 'no-such-mode'}\ndef f(x):\n    return x\n")
    said = conventions.read(made)
    program = resolve.resolve(made, target("f"), said, lambda _: True)
    with pytest.raises(RunFailedError, match=r"torch\.compile\(f, mode='no-such-mode'\) is refused"):
        resolve.compile_program(program, said, target("f"), lambda _: True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ENTRY = 3", "ENTRY is of type int"),
        ("COMPILE_KWARGS = []", "has to be a dict"),
        ("BACKEND = 3", "BACKEND is of type int"),
    ],
)
def test_a_convention_of_the_wrong_type_is_placed_on_its_line(line: str, words: str) -> None:
    with pytest.raises(RunFailedError) as caught:
        conventions.read(module(f"x = 1\n{line}\n"))
    assert words in caught.value.failure.message
    assert caught.value.failure.place.line == 2


def test_a_class_that_needs_arguments_is_told_which_function_returns_them() -> None:
    message = failure(LINEAR, comment="f32[4, 4]").message
    assert "the file has no function get_init_inputs()" in message and "'dim'" in message and "ENTRY" not in message
