"""Which kept artifacts are those of a kernel: a key of everything that what the compiler makes depends on.

A kernel whose source imports files that anybody may edit has no key, and nothing of it is kept for other runs.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from dataclasses import astuple, dataclass

import torch
import triton

from inductoscope.compiler.simgpu import machine_code, triton_stages
from inductoscope.protocol import kernel_store
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Assembler

_STEADY = sys.stdlib_module_names | {"torch", "triton"}


@dataclass(frozen=True)
class Toolchain:
    """The compiler of a device: what people want to know of it, and a text that differs when it makes other code."""

    known: Assembler
    identity: str


def toolchain(device: Device) -> Toolchain:
    """The compiler that this process uses for `device`."""
    ptxas = None
    if not device.is_amd:
        major, minor = device.capability
        path = triton_stages.ptxas_path(major * 10 + minor)
        ptxas = machine_code.version_of(path) if path is not None else None
    disassembler = None if device.is_amd else machine_code.disassembler()
    known = Assembler(str(triton.__version__), ptxas, disassembler)
    build, heeded = triton_stages.build(), sorted(triton_stages.environment().items())
    parts = [known.triton, ptxas, torch.__version__, build, heeded, astuple(device)]
    return Toolchain(known, json.dumps(parts, default=str))


def key(source: str, compiler: Toolchain) -> str | None:
    """The key of the kernel in `source`, or None where what it imports may change without the text changing."""
    if not _imports(source) <= _STEADY:
        return None
    name = kernel_store.own_name(source)
    text = kernel_store.nameless(source, name) if name is not None else source
    return _hash(text, compiler.identity)


def key_of_this_run(source: str, compiler: Toolchain) -> str:
    """A key that nobody looks for: for a kernel without one, or whose compilation failed half way."""
    return _hash(source, compiler.identity, "incomplete")


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps([kernel_store.FORMAT, *parts]).encode("utf-8", "surrogatepass")).hexdigest()


def _imports(source: str) -> set[str]:
    """The top-level packages that the source imports; something that is no module's name where it cannot be read."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return {""}
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    wholly = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | wholly}
