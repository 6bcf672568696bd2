"""The server with a real worker: torch compiles, and the editor shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fixture import parse
from support.lsp import Profile, editor

pytestmark = pytest.mark.slow

MODEL = parse("""
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(64)

        def forward(self, x):  # <forward>
            x = self.norm(x)  # <norm>
            x = torch.nn.functional.gelu(x)  # <gelu>
            print("half way")  # <print>
            return x.softmax(-1)  # <softmax>


    def get_inputs():
        return [torch.randn(32, 64)]
""")


async def test_a_model_with_a_break_from_opening_to_its_mending(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, {"device": "sim:H200"}, status=True) as e:
        e.open("model.py", MODEL.source)
        answer = await e.sync("model.py")
        assert [(target.name, target.status) for target in answer.targets] == [("Model.forward", "partial")]
        (broken,) = [item for item in e.diagnostics("model.py") if item.code == "graph-break"]
        assert broken.range.start.line + 1 == MODEL["print"]

        on_gelu = await e.hover("model.py", MODEL["gelu"])
        assert on_gelu is not None and "@triton.jit" in on_gelu and f"# <- line {MODEL['gelu']}" in on_gelu
        assert f"line {MODEL['norm']}" in on_gelu, "the norm is fused with it"
        on_print = await e.hover("model.py", MODEL["print"])
        assert on_print is not None and "Graph break" in on_print

        summary, expected, benchmark, *_ = [lens.command.title for lens in await e.lenses("model.py") if lens.command]
        assert summary.startswith("H200 (simulated): 2 graphs, ") and summary.endswith(", 1 break")
        assert expected.startswith("predicted ") and expected.endswith(" against eager")
        assert benchmark == "Benchmark compiled vs eager"
        assert e.statuses[-1].health == "ok" and e.statuses[-1].torch.startswith("2.")

        fix, *_ = await e.actions("model.py", MODEL["print"], only=["quickfix"])
        assert fix.edit is not None and fix.edit.changes is not None
        ((edit,),) = fix.edit.changes.values()
        lines, first, last = MODEL.source.split("\n"), edit.range.start, edit.range.end
        kept = lines[first.line][: first.character], lines[last.line][last.character :]
        lines[first.line : last.line + 1] = [f"{kept[0]}{edit.new_text}{kept[1]}"]
        mended = "\n".join(lines)
        e.edit("model.py", 2, mended)
        e.save("model.py", mended)
        answer = await e.sync("model.py", 2)
        assert [target.status for target in answer.targets] == ["compiled"]
        assert e.diagnostics("model.py") == []
