"""Objects that `torch.compile` has already made, and how to watch their calls.

Private names, the same in torch 2.11 to 2.15:
- `OptimizedModule` (`torch._dynamo.eval_frame`): what `torch.compile(module)` returns; its instance attribute
  `forward` is what a call ends in, outside of what is compiled.
- `_torchdynamo_orig_callable`: on every compiled function, the function it was made from.
- `_torchdynamo_disable`: true on a function that `torch.compiler.disable` made, which has an original too.
- `_compiled_call_impl`: set by `nn.Module.compile()`; what a call of that module ends in.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Before = Callable[[tuple[Any, ...], dict[str, Any]], Arguments]
After = Callable[[Any], Any]


def is_compiled(obj: object) -> bool:
    """Whether calling `obj` runs something that the program itself put under `torch.compile`."""
    if isinstance(obj, OptimizedModule):
        return True
    if isinstance(obj, torch.nn.Module):
        return obj._compiled_call_impl is not None or _is_compiled_function(obj.forward)
    return _is_compiled_function(obj)


def original(obj: Any) -> Any:
    """What a compiled object was made from; any other object itself."""
    if isinstance(obj, OptimizedModule):
        return obj._orig_mod
    if isinstance(obj, torch.nn.Module):
        return obj
    return getattr(obj, "_torchdynamo_orig_callable", obj)


def eager_twin(obj: Any) -> Any:
    """A copy of a compiled object's program that runs eagerly; a function is its own twin."""
    if isinstance(obj, OptimizedModule):
        return copy.deepcopy(obj._orig_mod)
    if not isinstance(obj, torch.nn.Module):
        return original(obj)
    twin = copy.deepcopy(obj)
    twin._compiled_call_impl = None
    if _is_compiled_function(twin.forward):
        plain = original(type(twin).forward)
        twin.forward = types.MethodType(plain, twin)
    return twin


def repeatable(obj: Any) -> bool:
    """Whether the program's own compilation of `obj` can be repeated on another instance.

    `nn.Module.compile()` does not keep its arguments, and an instance's own `forward` is bound to that instance.
    """
    if isinstance(obj, OptimizedModule) or not isinstance(obj, torch.nn.Module):
        return True
    return obj._compiled_call_impl is None and _is_compiled_function(type(obj).forward)


def compiled_like(obj: Any, twin: Any) -> Any:
    """`twin`, made by `eager_twin(obj)`, compiled as the program compiles it; `obj` has to be `repeatable`."""
    if isinstance(obj, OptimizedModule):
        return obj.dynamo_ctx(twin)
    if not isinstance(obj, torch.nn.Module):
        return obj
    del twin.forward  # which hid the class's own, compiled one
    return twin


def observed(obj: Any, before: Before, after: After) -> Any:
    """`obj`, or what to call in its place: each call's arguments go through `before` first, its result through `after`.

    The watching stands outside of what is compiled, and modules stay the same object, since programs do more with a
    module than call it.
    """
    if isinstance(obj, OptimizedModule):
        obj.forward = _watched(obj.forward, before, after)
        return obj
    if isinstance(obj, torch.nn.Module):
        if obj._compiled_call_impl is not None:
            obj._compiled_call_impl = _watched(obj._compiled_call_impl, before, after)
        else:
            obj.register_forward_pre_hook(lambda _module, args, kwargs: before(args, kwargs), with_kwargs=True)
            obj.register_forward_hook(lambda _module, _args, result: after(result))
        return obj
    return _watched(obj, before, after)


def _watched(function: Callable[..., Any], before: Before, after: After) -> Callable[..., Any]:
    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = before(args, kwargs)
        return after(function(*args, **kwargs))

    return watched


def _is_compiled_function(obj: object) -> bool:
    return hasattr(obj, "_torchdynamo_orig_callable") and not getattr(obj, "_torchdynamo_disable", False)
