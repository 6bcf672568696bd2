"""Inlay hints over the wire: the server says that it has them, and answers for the range that is asked about."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from support import fake_interpreter
from support.fake_worker import Script
from support.fixture import parse
from support.lsp import Profile, editor

MODEL = parse("""
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):
            ключ = y = torch.relu(x)  # <relu>
            return y.sum()  # <sum>


    def get_inputs():
        return [torch.ones(4, 8)]
""")


async def test_variables_of_the_range_have_their_shapes(tmp_path: Path) -> None:
    value = {"file": str(tmp_path / "model.py"), "op": "relu", "text": "f32[4, 8]", "graph": "0/0", "device": "cpu"}
    values = [{**value, "line": MODEL["relu"], "name": "y"}, {**value, "line": MODEL["sum"], "name": None}]
    settings = {
        "interpreter": fake_interpreter.settings(Script().hello().take_run().done(values=values), tmp_path),
        "device": "cpu",
    }
    async with editor(tmp_path, Profile.NEOVIM, settings) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")

        async def asked(first: int, last: int) -> list[types.InlayHint]:
            lines = types.Range(types.Position(first - 1, 0), types.Position(last - 1, 0))
            document = types.TextDocumentIdentifier((tmp_path / "model.py").as_uri())
            found = await e.client.text_document_inlay_hint_async(types.InlayHintParams(document, lines))
            return list(found or [])

        (hint,) = await asked(1, 20)
        # Neovim counts bytes, and each letter of the first name has two.
        column = len("        ключ = y".encode())
        assert (hint.position, hint.label) == (types.Position(MODEL["relu"] - 1, column), ": f32[4, 8]")
        assert hint.kind is types.InlayHintKind.Type
        assert await asked(MODEL["sum"], 20) == []
