"""Operators that got no generated code where one would expect it, and why.

A matmul, a convolution, attention, an FFT or a factorisation belongs in a library: nobody expects Inductor to write
it.  A sort, a cumulative sum on the CPU, or arithmetic on complex numbers stands between operators that could have
been fused, and that is worth a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.findings import callers, finding
from inductoscope.compiler.lower.nodes import Origins, op_name
from inductoscope.compiler.lower.places import Places, stack_of
from inductoscope.compiler.lower.recording import Call, Compilation
from inductoscope.protocol.report import Finding, Phase, Place, Related

_BUILT_IN = frozenset({"aten", "prims"})
# Namespaces of torch's own library kernels: oneDNN, quantised oneDNN, collectives, tensor-core helpers.
_LIBRARIES = frozenset({"mkldnn", "onednn", "mkl", "quantized", "_c10d_functional", "c10d", "symm_mem", "inductor"})
_BELONGS = frozenset(
    {
        "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "vdot", "matmul", "linear", "_scaled_mm",
        "_int_mm", "_grouped_mm", "_scaled_grouped_mm", "_addmm_activation", "_weight_int8pack_mm",
        "_weight_int4pack_mm", "_sparse_semi_structured_linear", "_sparse_semi_structured_mm", "cholesky",
        "cholesky_solve", "triangular_solve", "lu_unpack", "geqrf", "ormqr", "lstm", "gru", "rnn_tanh", "rnn_relu",
        "_cudnn_rnn", "_thnn_fused_lstm_cell", "ctc_loss", "_ctc_loss",
    }
)  # fmt: skip
_BELONGS_IF_NAMED = ("convolution", "conv_", "scaled_dot_product", "attention", "_fft_", "linalg", "rnn", "_cslt_")
_COMPLEX = "Inductor does not generate code for complex numbers"
_OF_VALUES = frozenset({_COMPLEX})


@dataclass(frozen=True)
class Fallback:
    """An operator that the library runs, at a line of the model."""

    op: str
    place: Place
    why: str
    chain: tuple[Place, ...]
    phase: Phase


def fallbacks(noted: Compilation, phase: Phase, places: Places) -> list[Fallback]:
    """The library calls of one graph that stand where generated code would be expected."""
    origins = Origins(noted)
    found = []
    for call in noted.calls:
        nodes = origins.of_call(call) if call.extern and call.name not in noted.loaded else ()
        for node in nodes[:1]:
            place, op, why = places.of(node), op_name(node), _why(node, call)
            if place is not None and op is not None and why is not None:
                found.append(Fallback(op, place, why, places.chain(stack_of(node)), phase))
    return found


def library_findings(found: Iterable[Fallback]) -> list[Finding]:
    """One finding for each line and cause, however many operators it is about and however often they are called there.

    A cause that lies in the values, and not in the operators, is one finding for all lines of a file.
    """
    grouped: dict[tuple[str, int | None, str], list[Fallback]] = {}
    for fallback in found:
        line = None if fallback.why in _OF_VALUES else fallback.place.line
        grouped.setdefault((fallback.place.file, line, fallback.why), []).append(fallback)
    return [_finding(same) for same in grouped.values()]


def _finding(same: list[Fallback]) -> Finding:
    place = min((one.place for one in same), key=lambda place: place.line)
    here = [one for one in same if one.place.line == place.line]
    one_operator = len({one.op for one in here}) == 1
    gets, it, runs = (
        ("gets", "It", "runs as a library call") if one_operator else ("get", "They", "run as library calls")
    )
    return finding(
        "library-kernel",
        place,
        f"{_operators(here)} {gets} no generated code: {same[0].why}. {it} {runs}, and what stands before and after "
        "cannot be fused across.",
        count=len(same),
        related=(*callers(here[0].chain), *_elsewhere(same, place)),
    )


def _operators(same: list[Fallback]) -> str:
    """`aten.mul and aten.add`, then those of the backward pass of the same line."""
    by_phase = {phase: list(dict.fromkeys(one.op for one in same if one.phase is phase)) for phase in Phase}
    forward, backward = _and(by_phase[Phase.FORWARD]), _and(by_phase[Phase.BACKWARD])
    if not forward:
        return f"{backward}, in the backward pass of this line,"
    return f"{forward}, and {backward} in the backward pass of this line," if backward else forward


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _elsewhere(same: list[Fallback], first: Place) -> Iterator[Related]:
    by_line: dict[tuple[str, int], list[Fallback]] = {}
    for one in same:
        if one.place.line != first.line:
            by_line.setdefault((one.place.file, one.place.line), []).append(one)
    for (file, line), there in sorted(by_line.items()):
        yield Related(file, line, f"{_operators(there).rstrip(',')} for the same reason")


def _why(node: torch.fx.Node, call: Call) -> str | None:
    """Why Inductor called a library for this node, or None where that is what one would expect."""
    target, operator = node.target, compat.operator_of(node)
    if operator is None or operator.only_views:
        return None
    if operator.namespace not in _BUILT_IN:
        custom = operator.namespace not in _LIBRARIES
        return "it is a custom operator, which Inductor cannot look into" if custom else None
    name = operator.name
    if name.removesuffix("_backward") in _BELONGS or any(part in name for part in _BELONGS_IF_NAMED):
        return None
    if _is_copy(name) or name.startswith("inductor_"):  # the latter are Inductor's own helpers for random numbers
        return None
    if _complex(node):
        return _COMPLEX
    if torch.Tag.dynamic_output_shape in getattr(target, "tags", ()):
        return "the size of its result depends on the data"
    device = _device(call)
    if compat.only_falls_back(target):
        return "Inductor has no code generator for it"
    return f"Inductor's generated code{f' for {device}' if device else ''} does not cover it in this form"


def _is_copy(name: str) -> bool:
    """Moves between devices and into place, which are no computation."""
    return name in ("copy_", "_to_copy", "device_put", "clone", "set_", "resize_", "_copy_from")


def _complex(node: torch.fx.Node) -> bool:
    values = [node.meta.get("val"), *(source.meta.get("val") for source in node.all_input_nodes)]
    return any(isinstance(value, torch.Tensor) and value.dtype.is_complex for value in values)


def _device(call: Call) -> str | None:
    device = call.nodes[0].get_device()
    return {"cpu": "the CPU", "cuda": "the GPU"}.get(device.type, device.type) if device is not None else None
