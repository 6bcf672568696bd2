"""torch's own account of what a compiled program keeps for its backward pass, and of its graphs."""

from __future__ import annotations

import contextlib
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import detect_fake_mode
from torch._inductor import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V

_ASSIGNED = re.compile(r"^ +(\w+)(?:: \"[^\"]*\")? = (?!None)", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Kept:
    """A tensor that is held for the backward: sizes and bytes."""

    sizes: tuple[int, ...]
    bytes: int


def partitioned(program: Callable[..., Any], dynamic: bool | None = None) -> Callable[..., Any]:
    """The program compiled and cut in two as Inductor does it, and run op by op: no C++ compiler is needed for that."""

    def cut(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
        with V.set_fake_mode(detect_fake_mode(inputs)):
            return compile_fx.partition_fn(joint, inputs, **options)

    backend = aot_autograd(
        fw_compiler=lambda module, inputs: module,
        partition_fn=cut,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )
    torch._dynamo.reset()
    return torch.compile(program, backend=backend, dynamic=dynamic)


def kept_by_autograd(compiled: Callable[..., Any], *args: Any) -> list[Kept]:
    """What autograd is given to keep in a call of a program that was compiled by an earlier one."""
    compiled(*args)
    found: list[Kept] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        found.append(Kept(tuple(tensor.shape), tensor.nbytes))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        compiled(*args)
    return sorted(found)


@contextlib.contextmanager
def graph_texts() -> Iterator[dict[str, list[str]]]:
    """The texts of graphs that torch itself writes into its structured trace meanwhile, by the record's name."""
    texts: dict[str, list[str]] = defaultdict(list)

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for name in getattr(record, "metadata", {}):
                if name.startswith("aot_") and name.endswith("_graph"):
                    texts[name].append(getattr(record, "payload", None) or "")

    handler, trace = Handler(), logging.getLogger("torch.__trace")
    trace.addHandler(handler)
    try:
        yield texts
    finally:
        trace.removeHandler(handler)


def operators(text: str) -> list[str]:
    """The names of the operators in a graph that torch wrote."""
    return _ASSIGNED.findall(text)


def returned(text: str) -> list[str]:
    """The names of the results in a graph that torch wrote."""
    last = text.rstrip().rsplit("return ", maxsplit=1)[1]
    return re.findall(r"\w+", re.sub(r"#.*", "", last))
