"""Inputs and weights too large for this machine, on a simulated device."""

import textwrap
from pathlib import Path

import pytest

from inductoscope.protocol.messages import TargetKind
from inductoscope.protocol.report import Rung, Status, TargetReport
from support.raw_worker import a_run, do

pytestmark = pytest.mark.slow

HUGE = "1 << 22, 1 << 22"  # 64 TiB as float32: no machine has them, and no allocator gives them
LARGE = "1 << 13, 1 << 12"  # 128 MiB
AS_INPUT = f"f32[{1 << 22}, {1 << 22}]"


def _report(folder: Path, text: str, **options: object) -> TargetReport:
    file = folder / "large_model.py"
    file.write_text("import torch\nfrom torch import nn\n\n" + textwrap.dedent(text))
    return do(a_run(file, device="sim:H200", **options)).report  # type: ignore[arg-type]


def _model(inputs: str) -> str:
    return f"""
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
{textwrap.indent(textwrap.dedent(inputs), "    ")}
"""


@pytest.mark.parametrize(
    "inputs",
    [
        f"return [torch.rand({HUGE})]",
        f"return [torch.empty(({HUGE})).normal_()]",
        f"return [torch.randint(0, 9, ({HUGE})).float()]",
        f"return [torch.rand({HUGE}) * torch.arange(1 << 22)]",
        f"return [torch.ones({HUGE}).to('cpu').requires_grad_()]",
    ],
)
def test_inputs_need_no_memory(tmp_path: Path, inputs: str) -> None:
    report = _report(tmp_path, _model(inputs))
    assert report.status is Status.COMPILED, report.message
    assert report.inputs[0].args == (AS_INPUT,)


def test_inputs_of_a_comment_need_no_memory(tmp_path: Path) -> None:
    text = "def f(x, n):\n    return (x * n).half()\n"
    comment = f"x=bf16[{1 << 22}, {1 << 22}], n=i64[1]"
    report = _report(tmp_path, text, entry="f", kind=TargetKind.FUNCTION, comment=comment)
    assert report.status is Status.COMPILED, report.message


def test_weights_need_no_memory_and_kernels_are_made_for_them(tmp_path: Path) -> None:
    text = """
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)
            self.register_buffer("scale", torch.full((width, width), 2.0))

        def forward(self, x):
            return torch.relu(self.layer(x)) * self.scale.sum()


    def get_init_inputs():
        return [1 << 22]


    def get_inputs():
        return [torch.rand(2, 1 << 22)]
    """
    report = _report(tmp_path, text, rung=Rung.LOWER)
    assert report.status is Status.COMPILED, report.message
    assert {kernel.language.value for kernel in report.kernels} == {"triton", "extern"}


@pytest.mark.parametrize(
    "inputs",
    [
        f"x = torch.rand({LARGE})\nx.numpy()[0] = 1\nreturn [x]",
        f"x = torch.rand({LARGE})\nassert not x.is_cuda\nreturn [x]",
    ],
)
def test_data_that_the_program_wants_on_the_cpu_is_there(tmp_path: Path, inputs: str) -> None:
    report = _report(tmp_path, _model(inputs))
    assert report.status is Status.COMPILED, report.message


def test_a_look_while_inputs_are_made_is_no_wait_for_the_device(tmp_path: Path) -> None:
    report = _report(tmp_path, _model(f"x = torch.rand({LARGE})\nassert x.mean() > 0.4\nreturn [x]"))
    assert (report.status, report.syncs) == (Status.COMPILED, ())


def test_what_cannot_be_made_at_all_is_told_as_without_simulation(tmp_path: Path) -> None:
    file = tmp_path / "large_model.py"
    file.write_text(
        "from torch import nn\nimport torch\n" + _model(f"raise ValueError(torch.rand({LARGE}).device.type)")
    )
    failure = do(a_run(file, device="sim:H200")).failure
    assert "ValueError: cpu" in failure.message


AT_IMPORT = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.empty({HUGE}))
        self.small = nn.Linear(4, 4)

    def forward(self, x):
        return self.small(x) * self.table.sum()


model = Net()
compiled = torch.compile(model)
x = torch.randn({HUGE})


def get_inputs():
    return [torch.rand(2, 4)]


@torch.compile
def f(y):
    return y @ x
"""


def test_what_the_file_makes_at_import_needs_no_memory(tmp_path: Path) -> None:
    report = _report(tmp_path, AT_IMPORT, entry="compiled", kind=TargetKind.OBJECT, rung=Rung.LOWER)
    assert report.status is Status.COMPILED, report.message
    assert report.kernels
    assert not any("from the start" in note for note in report.notes)


def test_a_large_tensor_of_the_file_that_nothing_moves_is_told(tmp_path: Path) -> None:
    comment = f"y=f32[2, {1 << 22}]"
    report = _report(tmp_path, AT_IMPORT, entry="f", kind=TargetKind.FUNCTION, comment=comment)
    assert report.status is Status.COMPILED, report.message
    assert any(note.startswith("`x` is on the GPU from the start here") for note in report.notes)


@pytest.mark.parametrize(
    "said",
    [
        "x.numpy()[0] = 1",
        "assert not x.is_cuda",
        "KEEP_ON_CPU = [0]",
        "REQUIRES = 'cuda'",
        "import helper_of_large_model",
    ],
)
def test_a_file_that_wants_its_tensors_on_the_cpu_is_imported_again_and_gets_them(tmp_path: Path, said: str) -> None:
    (tmp_path / "helper_of_large_model.py").write_text(
        "import sys\nx = sys.modules['large_model'].x\nassert not x.is_cuda\n"
    )
    text = f"x = torch.rand({LARGE})\nHERE = x.device.type\n{said}\n\n\n"
    report = _report(tmp_path, text + _model("assert HERE == x.device.type == 'cpu'\nreturn [torch.rand(2, 4)]"))
    assert report.status is Status.COMPILED, report.message


def test_inputs_of_a_comment_that_do_not_fit_are_not_made_for_real(tmp_path: Path) -> None:
    file = tmp_path / "large_model.py"
    file.write_text("import torch\n\ndef f(x):\n    return x + 1\n")
    comment = f"x=f32[{1 << 22}, {1 << 22}], other=f32[2]"
    run = a_run(file, device="sim:H200", entry="f", kind=TargetKind.FUNCTION, comment=comment)
    assert "cannot be called with" in do(run).failure.message  # and not that memory is missing
