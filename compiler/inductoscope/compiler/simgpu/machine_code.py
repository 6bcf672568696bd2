"""What machine code tells of itself, asked of NVIDIA's tools that the Triton package ships or of AMD's assembly text.

Knows files and programs, neither kernels nor configurations.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOL_TIMEOUT_S = 60.0
"""How long one of the tools may take; all of them answer in well under a second for kernels of an ordinary size."""


@dataclass(frozen=True)
class Usage:
    """32-bit registers of a thread, and how many of its 32-bit values live in memory for want of registers."""

    registers: int
    spills: int


def usage(asm: Mapping[str, Any]) -> Usage | None:
    """What the machine code among Triton's artifacts needs; None where it cannot be read."""
    if "cubin" in asm:
        text = _output("cuobjdump", asm["cubin"], "-res-usage") or ""
        found = re.search(r"REG:(\d+) STACK:(\d+)", text)
        # What the driver calls spills: the stack frame, in 32-bit words.
        return Usage(int(found[1]), int(found[2]) // 4) if found else None
    text = asm.get("amdgcn", "")
    registers = re.search(r"\.vgpr_count:\s*(\d+)", text)
    spilled = re.search(r"\.vgpr_spill_count:\s*(\d+)", text)
    return Usage(int(registers[1]), int(spilled[1]) if spilled else 0) if registers else None


def disassemble(machine_code: bytes) -> str | None:
    """The SASS text of a cubin, or None where Triton ships no disassembler for it.  About 0.3 s."""
    return _output("nvdisasm", machine_code, "-c")


def disassembler() -> str | None:
    """The path of the program that turns a cubin into text, or None where there is none that can be run."""
    path = _path("nvdisasm")
    return path if path is not None and os.access(path, os.X_OK) else None


@functools.cache
def version_of(program: str) -> str | None:
    """The version that one of NVIDIA's tools says it has (`12.9.86`); None where it cannot be run."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout)
    return found[1] if done.returncode == 0 and found else None


def _path(name: str) -> str | None:
    """Where a tool is: what `TRITON_CUOBJDUMP_PATH` and the like name, as for Triton itself, else what it ships."""
    import triton

    shipped = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    chosen = Path(os.environ.get(f"TRITON_{name.upper()}_PATH") or shipped)
    return str(chosen) if chosen.is_file() else None


def _output(name: str, machine_code: bytes, option: str) -> str | None:
    """What a tool prints about machine code, or None where it is not there, cannot be run or fails."""
    program = _path(name)
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine_code)
        file.flush()
        command = [program, option, file.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return done.stdout if done.returncode == 0 else None
