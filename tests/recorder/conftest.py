"""A folder with a package `torch` that does nothing but write records, so that recording is tested in milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inductoscope.server.recorded_run import environment

FAKE = {
    "torch/__init__.py": """
import logging
from torch import nn
__version__ = "2.99"
log = logging.getLogger("torch.__trace")
log.setLevel(logging.DEBUG)
log.propagate = False
class Tensor:
    dtype, shape, device, requires_grad = "torch.float32", (4, 8), "cpu", False
    def stride(self): return (8, 1)
def record(metadata, payload=None):
    if log.handlers:
        log.debug("", extra={"metadata": metadata, "payload": payload})
def compile(function):
    from torch._dynamo import eval_frame
    return eval_frame.compiled(function)
""",
    "torch/nn.py": "class Module: pass\n",
    "torch/_dynamo/__init__.py": "def disable(function): return function\n",
    "torch/_dynamo/eval_frame.py": """
def compiled(function):
    def wrapper(*args):
        from torch._dynamo import convert_frame
        variables = dict(zip(function.__code__.co_varnames, args))
        convert_frame.convert(function.__code__, variables)
        return function(*args)
    return wrapper
""",
    "torch/_dynamo/convert_frame.py": """
import logging, types, torch
numbers = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
def add_skip_reason(reason, frame): pass
def convert(code, variables):
    frame = types.SimpleNamespace(f_code=code, f_locals=variables)
    torch.record({"dynamo_start": {"stack": []}, **numbers})
    torch.record({"describe_tensor": {}, **numbers})
    torch.record({"dynamo_output_graph": {}, **numbers}, "a graph\\n\\nof lines")
    add_skip_reason("it is skipped. `torch.compile` will skip the frame and more", frame)
    logging.getLogger(__name__).warning(
        "torch._dynamo hit config.%s (%s)", "recompile_limit", 8, f"'{code.co_name}' ({code.co_filename}:1)", "x"
    )
""",
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    return folder


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    for name, text in FAKE.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "packages"


@pytest.fixture
def run(fake: Path, records: Path, tmp_path: Path) -> Run:
    """Runs a program with the recorder in it and the made-up torch on its path."""

    def start(program: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "program.py"
        file.write_text(program)
        env = environment(records, {**os.environ, "PYTHONPATH": str(fake), **more})
        command = [sys.executable, str(file), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    return start
