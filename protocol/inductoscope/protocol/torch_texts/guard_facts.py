"""The conditions that torch checks, as the report tells them, read from the text of each check.

torch checks much that is no part of the program: its own settings, modules that it imported under names of its own, the
tables behind a module's attributes.  Such guards are told too, marked as internal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductoscope.protocol.report import GuardFact
from inductoscope.protocol.torch_texts.guards import failure
from inductoscope.protocol.torch_texts.naming import plain

DYNAMIC_MARKS = "DIMENSION_DYNAMIC_MARKING_GUARD"
"""The check that the marks of `mark_dynamic` and its like on a tensor are as they were (2.11 to 2.15)."""

RELATIONS = frozenset({"NO_TENSOR_ALIASING", "STORAGE_OVERLAPPING", "OBJECT_ALIASING"})
"""Checks of several sources at once, which torch has at each of them."""

_STATE = frozenset({"GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"})
_OF_TORCH = re.compile(
    r"__import_|___|_hooks\b|\._(?:modules|parameters|buffers|backward_hooks)$|\.__dict__$|\btorch\b|\.__class__|^G$"
)
_CHECK_TENSOR = re.compile(
    r"check_tensor\(.*?, (?P<type>[\w.]+), DispatchKeySet\((?P<keys>.*?)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)$"
)
_UNMARKED = re.compile(r"hasattr\([^()]*\) == False(?: and hasattr\([^()]*\) == False)*")  # what any tensor is held to
_ANY = "any"
# Tensors of a simulated device are of a class of their own; on the real one the guard is on the usual class.
_SIMULATED, _TENSOR = "torch._subclasses.fake_tensor.FakeTensor", "torch.Tensor"
_ADDRESSES = frozenset({"type", "identity"})
_TENSOR_KINDS = {
    "dtype": "dtype",
    "device": "device",
    "requires-grad": "grad",
    "size": "size",
    "stride": "stride",
    "dispatch-keys": "keys",
}


def facts(compile_id: str, check: str, of: str, code: str) -> Iterator[GuardFact]:
    """The guards in one check of torch's: a check of a tensor is several, any other one.

    `check` is its class, `of` the source that it stands at, and `code` its text, both in torch's own words.
    """
    text, source = plain(code), plain(of)
    match = _CHECK_TENSOR.match(code) if check == "TENSOR_MATCH" else None
    if match is not None:
        yield from _of_tensor(compile_id, source, match)
    elif check in _STATE or (check == "LAMBDA_GUARD" and of == "L"):
        yield GuardFact(compile_id, "torch", "global-state", None, text, internal=True)
    elif check == DYNAMIC_MARKS:
        expected, told = ("none", None) if _UNMARKED.fullmatch(text) else (None, text)
        yield GuardFact(compile_id, source, "dynamic-marks", expected, told, internal=True)
    elif check == "NO_TENSOR_ALIASING":
        yield GuardFact(compile_id, source, "aliasing", None, text)
    else:
        yield _of_expression(compile_id, source, text, of)


def _of_tensor(compile_id: str, source: str, match: re.Match[str]) -> Iterator[GuardFact]:
    for kind, part in _TENSOR_KINDS.items():
        expected = match[part].replace("None", _ANY) if kind in ("size", "stride") else match[part]
        # The check of the device is one of its index, which tensors on the CPU have none of.
        expected = f"index {expected}" if kind == "device" else expected
        internal = kind == "dispatch-keys" or match[part] == "None"
        yield GuardFact(compile_id, source, kind, expected, internal=internal)


def _of_expression(compile_id: str, source: str, text: str, of: str) -> GuardFact:
    read = failure(text)
    internal = bool(_OF_TORCH.search(of))
    expected = read.expected if read.expected != text else None
    if read.kind in _ADDRESSES and expected is not None:
        # Its own text is an address.
        return GuardFact(
            compile_id, read.source or source, read.kind, expected.replace(_SIMULATED, _TENSOR), internal=internal
        )
    return GuardFact(compile_id, read.source or source, read.kind, expected, text, internal)
