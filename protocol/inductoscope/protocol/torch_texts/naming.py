"""Torch's names for the program's variables and attributes, written as the program would.  Knows no torch."""

from __future__ import annotations

import re

_LOCAL = re.compile(r"\bL\['(\w+)'\]")
_GLOBAL = re.compile(r"\bG\['(\w+)'\]")
_IN_DICT = re.compile(r"\.__dict__\['(_(?:modules|parameters|buffers))'\](?=\[)")
_TABLE = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")


def plain(text: str) -> str:
    """A source, or a text with sources in it, the way that the user would write it."""
    text = _IN_DICT.sub(r".\1", _GLOBAL.sub(r"\1", _LOCAL.sub(r"\1", text)))
    return _TABLE.sub(lambda match: f"[{match[1]}]" if match[1].isdecimal() else f".{match[1]}", text)


def is_of_module(source: str) -> bool:
    """Whether a source in torch's own words is a parameter, a buffer, or something else of a submodule."""
    return _TABLE.search(_IN_DICT.sub(r".\1", source)) is not None
