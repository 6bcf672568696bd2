"""What is said of a kernel that the assembler refuses: its own sentence, without commands and paths around it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inductoscope.compiler.simgpu import triton_stages
from inductoscope.compiler.simgpu.assemble import _problem
from inductoscope.protocol import devices

pytestmark = pytest.mark.slow

TAIL = "\nRepro command: /somewhere/ptxas -lineinfo --gpu-name=sm_90a /tmp/x.ptx"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ptxas /tmp/x.ptx, line 9; error   : Unknown symbol 'a'", "Unknown symbol 'a'."),
        (
            "ptxas error   : Entry function 'k' uses too much shared data",
            "Entry function 'k' uses too much shared data.",
        ),
        ("ptxas fatal   : Ptx assembly aborted due to errors", "Ptx assembly aborted due to errors."),
        ("ptxas-blackwell fatal   : Value 'sm_999a' is not defined", "Value 'sm_999a' is not defined."),
    ],
)
def test_only_what_the_assembler_says_is_told(monkeypatch: pytest.MonkeyPatch, said: str, told: str) -> None:
    monkeypatch.setattr(triton_stages, "ptxas_problem", lambda _arch: None)
    watch: Any = SimpleNamespace(stage="cubin")
    error = RuntimeError(f"Internal Triton PTX codegen error\n`ptxas` stderr:\n{said}{TAIL}")
    problem = _problem(error, watch, devices.find("H200"))
    assert problem == f"ptxas could not make machine code of this kernel: {told}"
