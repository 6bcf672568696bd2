"""A run in a process that was forked shows what a run in a new process shows, field by field."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol import codec
from inductoscope.protocol.report import Rung
from inductoscope.server.targets import scan
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerPool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]

BREAKS_AND_RECOMPILES = """
    import random

    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.calls = 0

        def forward(self, x, flag):
            self.calls += 1
            h = torch.relu(self.linear(x)) * flag
            print(h.sum())
            if h.sum() > 0:
                h = h + torch.rand_like(h)
            return h.softmax(-1)


    def get_input_sets():
        random.seed(5)
        return [(torch.randn(4, 8), 1.5), (torch.randn(6, 8), 1.5), (torch.randn(6, 8), random.random())]
"""

TRAINING = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

        def forward(self, x):
            return self.layers(x).square().mean()


    def exercise(fn):
        optimizer = torch.optim.AdamW(fn.parameters())
        for _ in range(2):
            fn(torch.randn(8, 16)).backward()
            optimizer.step()
            optimizer.zero_grad()
"""

WORLD = """
    import os, signal, sys, threading, warnings

    import torch

    def seen():
        names = {name.partition(".")[0] for name in sys.modules}
        return {
            "threads": torch.get_num_threads(),
            "python threads": threading.active_count(),
            "seed": torch.initial_seed(),
            "random": torch.rand(1).item(),
            "arguments": sys.argv,
            "folder": os.getcwd(),
            "path": sys.path,
            "environment": sorted(item for item in os.environ.items() if "inductoscope" not in str(item).lower()),
            "modules": sorted(names - set(sys.stdlib_module_names) - {"inductoscope", "torch", "triton"}),
            "filters": len(warnings.filters),
            "gradients": torch.is_grad_enabled(),
            "validate": torch.distributions.Distribution._validate_args,
            "cuda": torch.cuda.is_initialized(),
            "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
            "type": str(torch.get_default_dtype()),
            "leads": os.getpid() == os.getpgid(0) == os.getsid(0),
        }

    AT_IMPORT = seen()
    ENTRY = "f"

    def f(x):
        raise RuntimeError(repr(AT_IMPORT))

    def get_inputs():
        return [torch.ones(2)]
"""


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pools(loop: asyncio.AbstractEventLoop) -> Iterator[tuple[WorkerPool, WorkerPool]]:
    env = dict(os.environ)
    new, forked = (WorkerPool(sys.executable, spare=spare, env=env) for spare in (Spare.NONE, Spare.FORK))
    yield new, forked
    for pool in (new, forked):
        loop.run_until_complete(pool.close())


@pytest.mark.parametrize(
    ("text", "device"),
    [(BREAKS_AND_RECOMPILES, "cpu"), (TRAINING, "sim:H200"), (WORLD, "cpu"), (WORLD, "sim:H200")],
    ids=["breaks-cpu", "training-sim", "world-cpu", "world-sim"],
)
def test_both_show_the_same(
    text: str, device: str, tmp_path: Path, pools: tuple[WorkerPool, WorkerPool], loop: asyncio.AbstractEventLoop
) -> None:
    if device != "cpu":
        pytest.importorskip("triton")
    request = _request(text, device, tmp_path)

    async def both() -> tuple[RunOutcome, RunOutcome]:
        new, pool = pools
        return await new.run(request, lambda message: None), await _forked_from_the_last_layer(pool, request)

    new, forked = loop.run_until_complete(both())
    assert new.hello is not None and new.hello.warm is None
    assert forked.hello is not None and forked.hello.warm == ("torch", device)
    assert dataclasses.replace(forked.hello, pid=0, warm=None) == dataclasses.replace(new.hello, pid=0)
    assert _facts(forked) == _facts(new)
    assert (new.failure is None) == (text is not WORLD)


async def _forked_from_the_last_layer(pool: WorkerPool, request: RunRequest) -> RunOutcome:
    while True:
        outcome = await pool.run(request, lambda message: None)
        if outcome.hello is not None and outcome.hello.warm is not None and len(outcome.hello.warm) > 1:
            return outcome


def _request(text: str, device: str, folder: Path) -> RunRequest:
    file = folder / "model_under_test.py"
    file.write_text(textwrap.dedent(text))
    target = scan(file.read_text(), str(file)).targets[-1].target
    return RunRequest(target, device, Rung.LOWER, cwd=str(folder), memory_bytes=8 << 30)


def _facts(outcome: RunOutcome) -> Any:
    """All that a run tells but its times, and what differs between any two processes."""
    return _steady(codec.to_json(outcome.report)), outcome.files, outcome.failure and _steady(outcome.failure.message)


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key != "phases" and not key.endswith("ms")}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\b0x[0-9a-f]{6,}", "ADDRESS", re.sub(r"inductoscope-worker-\d+-\w+", "FOLDER", value))
    return value
