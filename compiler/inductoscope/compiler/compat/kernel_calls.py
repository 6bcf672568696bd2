"""What generated kernels are declared to take, and what the compiled graph gets them from.

Private parts of torch, checked by running on torch 2.11 to 2.15:
- `PythonWrapperCodegen.generate_kernel_call(name, call_args, *, triton, arg_types)`: every call of a generated kernel
  is written by it.  `arg_types` are C types for C++ kernels (`const float*`), dtypes and Python types for Triton.
- `should_unwrap_unspec_arg(name)`: such an argument reaches a Triton kernel as a number (`.item()`), converted and not
  reinterpreted.
- `cpp_utils.DTYPE_TO_CPP`: which C type holds the elements of a dtype.
- `PlainAOTInput` in `meta["desc"]` of a placeholder: which of the captured graph's arguments it is (2.9 and later).
  What AOTAutograd makes of an argument itself (a view's base, a subclass's parts) has a descriptor of another class.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from inductoscope.compiler.compat.inductor import Point, current_graph

Declared: TypeAlias = "str | torch.dtype"
"""A C type without `const` and `*`, or a dtype."""

KERNEL_CALL = Point(
    "torch._inductor.codegen.wrapper",
    "PythonWrapperCodegen.generate_kernel_call",
    "the types that a kernel's arguments are declared with",
)


def inputs_by_pointer(call_args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[tuple[str, Declared]]:
    """The inputs of the graph that a kernel gets a pointer to, by name, with what it takes their elements for.

    To be called while the call is written, with the arguments of `KERNEL_CALL`.
    """
    graph, types = current_graph(), options.get("arg_types")
    if types is None or getattr(graph, "parent", None) is not None:  # inputs of a subgraph are not the caller's
        return
    for name, declared in zip(call_args, types, strict=False):
        if not isinstance(name, str) or name not in graph.graph_inputs:
            continue
        if isinstance(declared, torch.dtype) and not _as_number(name):
            yield name, declared
        elif isinstance(declared, str) and declared.endswith("*"):
            yield name, declared.removeprefix("const ").removesuffix("*")


def holds(declared: Declared, dtype: torch.dtype) -> bool:
    """Whether elements of `dtype` are what `declared` says; true where this torch does not tell."""
    if isinstance(declared, torch.dtype):
        return declared == dtype
    name = _c_type(dtype)
    return name is None or name == declared


def placeholders(graph: Any) -> dict[str, torch.fx.Node]:
    """The inputs of a graph that Inductor compiles, as nodes by name."""
    return {node.name: node for node in graph.graph.nodes if node.op == "placeholder"}


def argument_index(placeholder: torch.fx.Node) -> int | None:
    """Which argument of the captured graph a placeholder is, unchanged; None for anything else."""
    described = placeholder.meta.get("desc")
    return int(described.idx) if type(described).__name__ == "PlainAOTInput" else None


def _as_number(name: str) -> bool:
    return bool(importlib.import_module("torch._inductor.codegen.triton_utils").should_unwrap_unspec_arg(name))


def _c_type(dtype: torch.dtype) -> str | None:
    name = importlib.import_module("torch._inductor.codegen.cpp_utils").DTYPE_TO_CPP.get(dtype)
    return name if isinstance(name, str) else None
