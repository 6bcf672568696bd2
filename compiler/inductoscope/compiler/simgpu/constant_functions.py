"""Functions that return one constant each, for the slots of a vtable: written as machine code, or by the C compiler.

Machine code needs a page of executable memory, which hardened systems refuse (SELinux's `execmem`, systemd's
`MemoryDenyWriteExecute`).  Code that a file brings is allowed there, so then the system's C compiler writes one, if
there is a compiler.  Knows nothing of torch.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol

from inductoscope.compiler.simgpu.errors import SimulationUnavailableError

_COMPILER_TIMEOUT_S = 60.0
_ARM = frozenset({"aarch64", "arm64"})


class ConstantFunctions(Protocol):
    """Functions by what they return."""

    def returning(self, value: float) -> int:
        """Address of a function that returns `value`: an int in the first result register (the second is 0)."""


def is_arm() -> bool:
    """Whether this machine follows the calling convention of 64-bit ARM."""
    return platform.machine().lower() in _ARM


def make() -> ConstantFunctions:
    """The way that works here.  Raises SimulationUnavailableError with the reason where none does."""
    machine = platform.machine().lower()
    if sys.platform != "linux" or machine not in {"x86_64", "amd64", *_ARM}:
        raise SimulationUnavailableError(
            f"it needs Linux on x86-64 or arm64, and this is {sys.platform} on {machine or 'an unknown machine'}."
        )
    try:
        return MachineCode()
    except OSError as refused:
        return _compiled(refused)


def _compiled(refused: OSError) -> ConstantFunctions:
    begin = f"the system refuses executable memory ({refused.strerror})"
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise SimulationUnavailableError(
            f"{begin}, and there is no C compiler (cc, gcc, clang) that could do without."
        ) from refused
    try:
        return CompiledCode(shlex.split(compiler))
    except (OSError, subprocess.SubprocessError) as error:
        raise SimulationUnavailableError(f"{begin}, and what {compiler} compiles cannot be used: {error}.") from error


class _Amd64:
    """Machine code of constant functions for the System V ABI of x86-64."""

    @staticmethod
    def integer(value: int) -> bytes:
        return b"\xb8" + struct.pack("<I", value) + b"\x31\xd2\xc3"  # mov eax, value; xor edx, edx; ret

    @staticmethod
    def double(value: float) -> bytes:
        return (
            b"\x48\xb8" + struct.pack("<d", value) + b"\x66\x48\x0f\x6e\xc0\xc3"
        )  # mov rax, bits; movq xmm0, rax; ret


class _Arm64:
    """Machine code of constant functions for AAPCS64."""

    @staticmethod
    def integer(value: int) -> bytes:
        low, high = value & 0xFFFF, value >> 16 & 0xFFFF
        # movz x0, low; movk x0, high, lsl 16; movz x1, 0; ret
        return struct.pack("<IIII", 0xD2800000 | low << 5, 0xF2A00000 | high << 5, 0xD2800001, 0xD65F03C0)

    @staticmethod
    def double(value: float) -> bytes:
        return struct.pack("<IId", 0x5C000040, 0xD65F03C0, value)  # ldr d0, #8; ret; .double value


class MachineCode:
    """Functions in a page of executable memory.  Raises OSError where the system grants none."""

    def __init__(self) -> None:
        self._encode: type[_Arm64] | type[_Amd64] = _Arm64 if is_arm() else _Amd64
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._used = 0
        self._known: dict[tuple[type, float], int] = {}

    def returning(self, value: float) -> int:
        """See `ConstantFunctions`."""
        key = (type(value), value)
        if key not in self._known:
            self._known[key] = self._write(
                self._encode.integer(value) if isinstance(value, int) else self._encode.double(value)
            )
        return self._known[key]

    def _write(self, code: bytes) -> int:
        start, address = self._used, self._base + self._used
        self._page[start : start + len(code)] = code
        self._used += (len(code) + 15) & ~15
        if is_arm():  # instruction and data caches are apart there
            ctypes.CDLL("libgcc_s.so.1").__clear_cache(ctypes.c_void_p(address), ctypes.c_void_p(address + len(code)))
        return address


class CompiledCode:
    """Functions in a shared library that `compiler` (a command) makes, each by itself when it is first asked for.

    Needs no headers.  The first is compiled at once, so that a compiler that does not work is found out here: raises
    OSError or subprocess.SubprocessError then.
    """

    def __init__(self, compiler: list[str]) -> None:
        self._compiler = compiler
        self._known: dict[tuple[type, float], int] = {}
        self._libraries: list[ctypes.CDLL] = []
        self.returning(1)

    def returning(self, value: float) -> int:
        """See `ConstantFunctions`."""
        key = (type(value), value)
        if key not in self._known:
            self._known[key] = self._compile(value)
        return self._known[key]

    def _compile(self, value: float) -> int:
        pair = "struct pair { long first, second; };\nstruct pair constant(void)"
        body = (
            f"{pair} {{ return (struct pair){{{value}, 0}}; }}"
            if isinstance(value, int)
            else f"double constant(void) {{ return {value!r}; }}"
        )
        with tempfile.TemporaryDirectory(prefix="inductoscope-") as folder:
            source, library = Path(folder, "constant.c"), Path(folder, "constant.so")
            source.write_text(f"{body}\n", encoding="utf-8")
            command = [*self._compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True, timeout=_COMPILER_TIMEOUT_S)
            self._libraries.append(ctypes.CDLL(str(library)))  # stays mapped when the file is gone
        return ctypes.cast(self._libraries[-1].constant, ctypes.c_void_p).value or 0
