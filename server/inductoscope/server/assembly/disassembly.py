"""SASS of a cubin, by the `nvdisasm` that the interpreter's Triton ships, with the lines that it comes from."""

from __future__ import annotations

import re
import subprocess
import tempfile

from inductoscope.server.assembly import line_tables

TIMEOUT_S = 30.0
"""How long disassembling may take; an ordinary kernel takes 0.3 s."""

_FILE = re.compile(r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_PTX = ".nv_debug_ptx_txt"


class DisassemblyError(RuntimeError):
    """There is no SASS; the message is a sentence."""


def disassemble(cubin: bytes, program: str) -> str:
    """What `program` (an nvdisasm) prints of the code of a cubin, with its comments on lines.

    Raises `DisassemblyError`.
    """
    try:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            command = [program, "--print-code", "--print-line-info-ptx", file.name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except OSError as error:
        raise DisassemblyError(f"{program} cannot be run: {error.strerror or error}.") from None
    except subprocess.TimeoutExpired:
        raise DisassemblyError(f"{program} took longer than {TIMEOUT_S:.0f} s.") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[:300] or f"it ended with status {done.returncode}"
        raise DisassemblyError(f"{program} cannot read this machine code: {said}.")
    return done.stdout


def annotated(text: str, ptx_lines: line_tables.LineTable) -> str:
    """The disassembler's text with each place as one comment: `//## PTX line 42, kernel line 26`.

    `ptx_lines` is the table of the PTX that the code was made of.
    """
    shown: list[str] = []
    for line in text.split("\n"):
        found = _FILE.match(line)
        if found is None:
            shown.append(line)
        elif found["file"] == _PTX:
            kernel_line = ptx_lines.get(int(found["line"]))
            of_kernel = f", kernel line {kernel_line}" if kernel_line is not None else ""
            shown.append(f"\t//## PTX line {found['line']}{of_kernel}")
    return "\n".join(shown)
