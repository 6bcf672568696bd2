"""CPU meanings of operations that only a GPU has kernels for; used for values only, never for what the compiler sees.

Whatever is not listed runs by its CPU kernel, else by its decomposition from torch's own table, else its value is
unknown.  The table also names the operations whose schema hides that they write to an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

from inductoscope.compiler.simgpu.errors import UnknownValueError

_ATTENTION = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)

# The backward of attention runs the forward again, so it does without what only the GPU's forward gives.
_RECOMPUTING = {f"aten::{name}_backward" for name in _ATTENTION}
_FROM_FORWARD = {"out", "logsumexp", "cum_seq_q", "cum_seq_k", "philox_seed", "philox_offset", "rng_state", "unused"}

# Batch normalisation changes its running statistics in training; only the newer schemas say so.
_HIDDEN_WRITES = {
    "aten::native_batch_norm": ("running_mean", "running_var"),
    "aten::cudnn_batch_norm": ("running_mean", "running_var"),
    "aten::miopen_batch_norm": ("running_mean", "running_var"),
}


def runnable(func: Any) -> Callable[..., Any]:
    """What computes the value of `func`, an operator overload, on CPU tensors."""
    special = _STAND_INS.get(func._schema.name)
    if special is not None:
        return lambda *args, **kwargs: special(_named(func, args, kwargs))

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except RuntimeError:  # no CPU kernel, or one that takes fewer mixtures of types than the GPU's
            if func not in decomposition_table:
                raise
            return decomposition_table[func](*args, **kwargs)

    return run


def used(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that `runnable(func)` looks at; the others, whose values may be unknown, are None."""
    if func._schema.name not in _RECOMPUTING:
        return args, kwargs
    names = [argument.name for argument in func._schema.arguments]
    kept = tuple(None if name in _FROM_FORWARD else arg for name, arg in zip(names, args, strict=False))
    return kept, {name: None if name in _FROM_FORWARD else value for name, value in kwargs.items()}


def hidden_writes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Arguments that `func` changes although its schema does not say so."""
    names = _HIDDEN_WRITES.get(func._schema.name, ())
    if not names:
        return []
    given = _named(func, args, kwargs)
    return [given[name] for name in names if given.get(name) is not None] if given.get("training") else []


def _named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _attention(given: dict[str, Any]) -> tuple[torch.Tensor]:
    """Only the output; log-sum-exp and random state stay unknown."""
    return (
        torch.nn.functional.scaled_dot_product_attention(
            given["query"],
            given["key"],
            given["value"],
            given.get("attn_bias"),
            given.get("dropout_p", 0.0),
            given.get("is_causal", False),
            scale=given.get("scale"),
            enable_gqa=given["query"].shape[1] != given["key"].shape[1],
        ),
    )


def _attention_backward(given: dict[str, Any]) -> tuple[torch.Tensor | None, ...]:
    """The textbook formula in float32; autograd is off where stand-ins run."""
    if given.get("dropout_p"):
        raise UnknownValueError("the dropout mask of the attention exists on the GPU only")
    query, upstream = given["query"].float(), given["grad_out" if "grad_out" in given else "grad_out_"].float()
    groups = query.shape[1] // given["key"].shape[1]
    key, value = (given[name].float().repeat_interleave(groups, 1) for name in ("key", "value"))
    scale = given.get("scale") or query.shape[-1] ** -0.5
    scores = scale * query @ key.mT
    bias = given.get("attn_bias")
    if bias is not None:
        scores = scores + bias
    if given.get("is_causal"):
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    through_weights = upstream @ value.mT
    grad_scores = weights * (through_weights - (through_weights * weights).sum(-1, keepdim=True))
    gradients = [scale * grad_scores @ key]
    for gradient in (scale * grad_scores.mT @ query, weights.mT @ upstream):
        gradients.append(gradient.unflatten(1, (-1, groups)).sum(2))
    if bias is not None and given.get("grad_input_mask", [False])[-1]:
        gradients.append(grad_scores.sum_to_size(bias.shape))
    return tuple(gradients)


def _lstm_cell(given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    gates = _gates(given)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = f * given["cx"] + i * g
    return o * cell.tanh(), cell, torch.cat([i, f, g, o], 1)


def _gru_cell(given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    x, h = given["input_gates"], given["hidden_gates"]
    if given.get("input_bias") is not None:
        x, h = x + given["input_bias"], h + given["hidden_bias"]
    (xr, xi, xn), (hr, hi, hn) = x.chunk(3, 1), h.chunk(3, 1)
    reset, update = (xr + hr).sigmoid(), (xi + hi).sigmoid()
    new = (xn + reset * hn).tanh()
    hx = given["hx"]
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hn], 1)


def _lstm_cell_backward(given: dict[str, Any]) -> tuple[torch.Tensor | None, ...]:
    i, f, g, o = given["workspace"].chunk(4, 1)
    tanh_cell = given["cy"].tanh()
    of_output, of_cell = given.get("grad_hy"), given.get("grad_cy")
    of_output = torch.zeros_like(given["cy"]) if of_output is None else of_output
    of_cell = of_output * o * (1 - tanh_cell**2) + (0 if of_cell is None else of_cell)
    gates = torch.cat(
        [
            of_cell * g * i * (1 - i),
            of_cell * given["cx"] * f * (1 - f),
            of_cell * i * (1 - g**2),
            of_output * tanh_cell * o * (1 - o),
        ],
        1,
    )
    return gates, of_cell * f, gates.sum(0) if given["has_bias"] else None


def _gru_cell_backward(given: dict[str, Any]) -> tuple[torch.Tensor | None, ...]:
    reset, update, new, hx, hn = given["workspace"].chunk(5, 1)
    upstream = given["grad_hy"]
    of_update = upstream * (hx - new) * update * (1 - update)
    of_new = upstream * (1 - update) * (1 - new**2)
    of_reset = of_new * hn * reset * (1 - reset)
    x = torch.cat([of_reset, of_update, of_new], 1)
    h = torch.cat([of_reset, of_update, of_new * reset], 1)
    biases = (x.sum(0), h.sum(0)) if given["has_bias"] else (None, None)
    return x, h, upstream * update, *biases


def _gates(given: dict[str, Any]) -> torch.Tensor:
    gates: torch.Tensor = given["input_gates"] + given["hidden_gates"]
    if given.get("input_bias") is not None:
        gates = gates + given["input_bias"] + given["hidden_bias"]
    return gates


_STAND_INS: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"aten::{name}": _attention for name in _ATTENTION},
    **{f"aten::{name}_backward": _attention_backward for name in _ATTENTION},
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    # Questions about kernels that only a GPU has: no cuDNN for this loss, no nested tensors for this mask.
    "aten::_use_cudnn_ctc_loss": lambda given: False,
    "aten::_use_miopen_ctc_loss": lambda given: False,
    "aten::_nested_tensor_from_mask_left_aligned": lambda given: False,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
