"""Keeps Dynamo away from functions that are no part of the program, though they run while the program does.

Between two compiled parts Dynamo looks at every Python function that runs: an import that the program makes there asks
the finder of unsaved texts, a trace record comes to a handler of ours.  Dynamo would count each as a frame of the
program's, guard it and try to compile it.  `skip_code` is torch's own way to leave a function alone (2.3 to 2.15).
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any


def hide_frames_of(package: str) -> None:
    """Let Dynamo leave alone every function of `package` that is imported by now."""
    from torch._dynamo.eval_frame import skip_code

    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for code in _codes_in(vars(module), name):
                # A decorator's wrapper has the name of what it wraps, but is code of the decorator's, used by others.
                if code.co_filename == module.__file__:
                    skip_code(code)


def _codes_in(names: Mapping[str, Any], module: str) -> Iterator[types.CodeType]:
    """The code of a module's own functions and methods, of what decorators made of them, and of functions inside."""
    for value in list(names.values()):
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType) and function.__module__ == module:
            yield from _nested(function.__code__)
            yield from _nested(inspect.unwrap(function).__code__)
        elif isinstance(value, type) and value.__module__ == module:
            yield from _codes_in(vars(value), module)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
