"""What a model file says about itself in module-level names: what to compile, how, and with which inputs.

ENTRY            the name of what to compile, where it is not class `Model`
BACKEND          the backend of `torch.compile`; without it the default one
COMPILE_KWARGS   further arguments of `torch.compile`
DYNAMO_CONFIG    values for `torch._dynamo.config`
REQUIRES         "cuda" where the program only makes sense on a GPU
KEEP_ON_CPU      indices of the inputs that stay on the CPU
get_init_inputs, get_inputs, get_input_sets, exercise      see `resolve` and `inputs`
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from inductoscope.compiler.failures import RunFailedError, failed
from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Place

T = TypeVar("T")

MODEL = "Model"


@dataclass(frozen=True)
class Conventions:
    """The conventional names of one module, checked for their types."""

    entry: str | None = None
    has_model: bool = False
    backend: str | Callable[..., Any] | None = None
    compile_kwargs: dict[str, Any] = field(default_factory=dict)
    dynamo_config: dict[str, Any] = field(default_factory=dict)
    requires: str | None = None
    keep_on_cpu: frozenset[int] = frozenset()
    get_init_inputs: Callable[[], Any] | None = None
    get_inputs: Callable[[], Any] | None = None
    get_input_sets: Callable[[], Any] | None = None
    exercise: Callable[[Any], Any] | None = None

    def speaks_of(self, entry: str) -> bool:
        """Whether the functions that give inputs are meant for `entry`: the file's one subject, where it names one."""
        if self.entry is not None:
            return entry == self.entry
        return entry == MODEL or not self.has_model


def read(module: types.ModuleType) -> Conventions:
    """The conventions of `module`.  Raises `RunFailedError` when one is of the wrong type."""
    keep = _value(module, "KEEP_ON_CPU", (list, tuple, set, frozenset), ())
    return Conventions(
        entry=_value(module, "ENTRY", str, None),
        has_model=isinstance(getattr(module, MODEL, None), type),
        backend=_backend(module),
        compile_kwargs=dict(_value(module, "COMPILE_KWARGS", dict, {})),
        dynamo_config=dict(_value(module, "DYNAMO_CONFIG", dict, {})),
        requires=_value(module, "REQUIRES", str, None),
        keep_on_cpu=frozenset(index for index in keep if isinstance(index, int)),
        get_init_inputs=_function(module, "get_init_inputs"),
        get_inputs=_function(module, "get_inputs"),
        get_input_sets=_function(module, "get_input_sets"),
        exercise=_function(module, "exercise"),
    )


def place_of(function: Callable[..., Any]) -> Place:
    """Where a function of the module is defined."""
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        return Place(code.co_filename, code.co_firstlineno, code.co_name)
    return Place("", 0)


def _value(module: types.ModuleType, name: str, kinds: type | tuple[type, ...], default: T) -> Any | T:
    value = getattr(module, name, None)
    if value is None:
        return default
    if not isinstance(value, kinds):
        wanted = kinds if isinstance(kinds, type) else kinds[0]
        message = f"{name} is of type {type(value).__name__}; it has to be a {wanted.__name__}."
        raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, _line_of(module, name)))
    return value


def _backend(module: types.ModuleType) -> str | Callable[..., Any] | None:
    backend = getattr(module, "BACKEND", None)
    if backend is None or isinstance(backend, str) or callable(backend):
        return backend
    message = f"BACKEND is of type {type(backend).__name__}; it has to be a backend's name or a function."
    raise RunFailedError(failed(FailureKind.BAD_INPUTS, message, _line_of(module, "BACKEND")))


def _function(module: types.ModuleType, name: str) -> Callable[..., Any] | None:
    function = getattr(module, name, None)
    return function if callable(function) else None


def _line_of(module: types.ModuleType, name: str) -> Place | None:
    """The line that binds a constant; None where the text cannot be read."""
    import inspect

    try:
        lines = inspect.getsource(module).splitlines()
    except (OSError, TypeError):
        return None
    for number, line in enumerate(lines, 1):
        if line.startswith(name) and line[len(name) :].lstrip().startswith(("=", ":")):
            return Place(str(module.__file__), number)
    return None
