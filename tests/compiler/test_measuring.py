"""Benchmarks asked for by a run; how time is taken is tested with the benchmark itself."""

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inductoscope.compiler import pipeline
from inductoscope.protocol.messages import Message, Progress, RunDone, TargetKind
from inductoscope.protocol.report import Agreement, Rung, Status, TargetReport
from support.raw_worker import a_run

pytestmark = pytest.mark.slow

BODY = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 16)
    def forward(self, x):
        return self.lin(x).relu()
"""
INPUTS = "def get_inputs():\n    return [torch.randn(4, 16)]\n"


@pytest.fixture(autouse=True)
def _unchanged_imports() -> Iterator[None]:
    path, meta = sys.path[:], sys.meta_path[:]
    yield
    sys.path[:], sys.meta_path[:] = path, meta
    sys.modules.pop("measured_model", None)


def _measured(folder: Path, text: str, entry: str, kind: TargetKind) -> tuple[TargetReport, list[Message]]:
    file = folder / "measured_model.py"
    file.write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text))
    said: list[Message] = []
    pipeline.run(replace(a_run(file, entry, kind=kind, rung=Rung.MEASURE), bench_seconds=0.05), said.append)
    last = said[-1]
    assert isinstance(last, RunDone), last
    return last.report, said


@pytest.mark.parametrize(
    ("text", "entry", "kind"),
    [
        (f"BACKEND = 'aot_eager'\n{BODY}{INPUTS}", "Model", TargetKind.MODULE_CLASS),
        (f"{BODY}net = torch.compile(Model(), backend='aot_eager')\n{INPUTS}", "net", TargetKind.OBJECT),
        (
            BODY.replace("    def forward", "    @torch.compile(backend='aot_eager')\n    def forward") + INPUTS,
            "Model",
            TargetKind.MODULE_CLASS,
        ),
        (
            f"@torch.compile(backend='aot_eager')\ndef f(x):\n    return x.sin() * 2\n{INPUTS}",
            "f",
            TargetKind.FUNCTION,
        ),
    ],
    ids=["by convention", "compiled module", "compiled forward", "compiled function"],
)
def test_every_way_to_compile_is_measured_against_its_eager_twin(
    tmp_path: Path, text: str, entry: str, kind: TargetKind
) -> None:
    report, said = _measured(tmp_path, text, entry, kind)
    benchmark = report.benchmark
    assert benchmark is not None
    # On a busy machine the benchmark may say that its rounds disagree; what it compared is known all the same.
    assert benchmark.refused is None or "rounds disagree" in benchmark.refused
    assert (benchmark.graphs, benchmark.graph_breaks) == (1, 0)
    assert benchmark.numerics is not None
    assert benchmark.numerics.agreement is not Agreement.DIFFERS
    assert (report.rung, report.inputs[0].args) == (Rung.MEASURE, ("f32[4, 16]",))
    assert "compiling" in [message.text for message in said if isinstance(message, Progress)]


@pytest.mark.parametrize(
    ("text", "entry", "words"),
    [
        (f"{BODY}def exercise(fn):\n    fn(torch.ones(16))\n", "Model", "add get_inputs()"),
        (f"{BODY}net = Model()\nnet.compile(backend='eager')\n{INPUTS}", "net", "use torch.compile(module)"),
    ],
)
def test_what_cannot_be_repeated_is_refused_with_a_way_out(tmp_path: Path, text: str, entry: str, words: str) -> None:
    kind = TargetKind.MODULE_CLASS if entry == "Model" else TargetKind.OBJECT
    report, _ = _measured(tmp_path, text, entry, kind)
    assert report.status is Status.NOT_RUN
    assert words in (report.message or "")
