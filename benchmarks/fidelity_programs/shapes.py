"""Dynamic shapes: symbolic from the start, after a second size, marked, and from data."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from fidelity_programs.attention import Block
from fidelity_programs.kit import BF16, Prepared, inference, large, on_gpu, randn, training, whole


def _two_sizes(run: Callable[..., Any], *batches: tuple[torch.Tensor, ...]) -> Prepared:
    def calls() -> list[float]:
        compiled = torch.compile(run)
        with torch.no_grad():
            for batch in batches:
                compiled(*batch)
        return []

    return whole(calls)


def pointwise_dynamic() -> Prepared:
    return inference(lambda x, y: torch.relu(x + y) * 2, large(1000, 300), large(300), dynamic=True)


def reduction_dynamic() -> Prepared:
    return inference(lambda x: x.softmax(-1), large(513, 1025), dynamic=True)


def mlp_dynamic() -> Prepared:
    module = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 128))
    return inference(on_gpu(module), large(100, 256), dynamic=True)


def block_dynamic() -> Prepared:
    return inference(on_gpu(Block(), BF16), large(3, 192, 512, dtype=BF16), dynamic=True)


def mlp_dynamic_trained() -> Prepared:
    module = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    return training(on_gpu(module), large(77, 128), dynamic=True)


def second_batch_size() -> Prepared:
    module = on_gpu(nn.Sequential(nn.Linear(128, 256), nn.LayerNorm(256), nn.ReLU()))
    return _two_sizes(module, (large(32, 128),), (large(48, 128),), (large(17, 128),))


def second_length() -> Prepared:
    return _two_sizes(lambda x: x.cumsum(-1).softmax(-1), (large(8, 100),), (large(8, 200),))


def marked_dynamic() -> Prepared:
    def calls() -> list[float]:
        x = large(24, 64)
        torch._dynamo.mark_dynamic(x, 0)
        torch.compile(lambda x: (x * x.shape[0]).sum(0))(x)
        return []

    return whole(calls)


def number_that_changes() -> Prepared:
    return _two_sizes(lambda x, n: x[:, :n].sum(-1) * n, (large(64, 64), 8), (large(64, 64), 16))


def selected_by_mask() -> Prepared:
    def calls(x: torch.Tensor) -> list[float]:
        kept = torch.compile(lambda x: x[x > 0].exp().sum() + x.sum())(x)
        return [kept.item()]

    return whole(calls, randn(64, 64))
