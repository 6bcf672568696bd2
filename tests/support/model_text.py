"""Modules made from a text, without a worker."""

from __future__ import annotations

import linecache
import textwrap
import types

from inductoscope.compiler import conventions, inputs, resolve
from inductoscope.compiler.inputs import Source
from inductoscope.compiler.resolve import Program
from inductoscope.protocol.messages import Target, TargetKind

FILE = "/project/model_text.py"
PREAMBLE = "import torch\nfrom torch import nn\n"


def is_user(file: str) -> bool:
    return file == FILE


def module(text: str) -> types.ModuleType:
    """The module that `text` makes; lines are counted from its first line."""
    text = textwrap.dedent(text).lstrip("\n")
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    made = types.ModuleType("model_text")
    made.__file__ = FILE
    exec(compile(PREAMBLE, "<preamble>", "exec"), made.__dict__)
    exec(compile(text, FILE, "exec"), made.__dict__)
    return made


def target(entry: str = "Model", comment: str | None = None) -> Target:
    return Target(FILE, entry, 1, TargetKind.OBJECT, entry, comment=comment)


def resolved(text: str, entry: str = "Model", comment: str | None = None) -> Program:
    made = module(text)
    return resolve.resolve(made, target(entry, comment), conventions.read(made), is_user)


def found(text: str, entry: str = "f", comment: str | None = None) -> Source:
    made = module(text)
    said = conventions.read(made)
    wanted = target(entry, comment)
    return inputs.find(wanted, resolve.resolve(made, wanted, said, is_user), said, is_user)
