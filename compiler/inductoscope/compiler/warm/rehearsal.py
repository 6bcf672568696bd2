"""One small program is compiled for a device in a warm process, so that the first compilation of each run is not the
first of its process; then torch is put back as far as a program or a report could tell."""

from __future__ import annotations

import tempfile
from pathlib import Path

from inductoscope.compiler import opened, pipeline, placement
from inductoscope.compiler.compat import leftovers
from inductoscope.compiler.failures import RunFailedError
from inductoscope.protocol.messages import Message, Run, RunDone, RunFailed, Target, TargetKind
from inductoscope.protocol.report import Rung

_NAME = "inductoscope_rehearsal"
_PROGRAM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)
        self.requires_grad_(False)

    def forward(self, x):
        h = self.norm(self.embed(x))
        h = torch.relu(self.linear(h)) + h
        return h.softmax(-1).sum()


def get_inputs():
    return [torch.ones(4, 4, dtype=torch.long)]
"""
"""No gradients: a backward pass would have autograd start threads where a GPU is."""


def compile_something(device: str, place: Path) -> str | None:
    """Compile a program, which is written into `place`, for `device`.

    Returns why this process is no good after it, or None.
    """
    try:
        placement.prepare(device, lambda _: False)  # a run has its device before it imports the program
    except RunFailedError as error:
        return error.failure.message
    with leftovers.put_back(), tempfile.TemporaryDirectory(dir=place) as folder:
        file = Path(folder, f"{_NAME}.py")
        file.write_text(_PROGRAM, encoding="utf-8")
        target = Target(str(file), "Model.forward", 6, TargetKind.MODULE_CLASS, "Model")
        said: list[Message] = []
        pipeline.run(Run(1, target, device, Rung.LOWER), said.append)
    opened.record().forget()
    last = said[-1]
    if isinstance(last, RunDone):
        return None
    return last.failure.message if isinstance(last, RunFailed) else "its rehearsal came to no end"
