"""What Inductor decides by timing on the card: alike on both sides only where the simulation is given the decisions."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from fidelity_programs.kit import BF16, F16, Prepared, inference, large, on_gpu, training

_TUNED = "max-autotune-no-cudagraphs"
_SEARCHED = {"coordinate_descent_tuning": True}


def matmul_tuned() -> Prepared:
    return inference(
        lambda x, y: (x @ y).relu(), large(1024, 2048, dtype=F16), large(2048, 512, dtype=F16), mode=_TUNED
    )


def batched_matmul_tuned() -> Prepared:
    return inference(torch.bmm, large(32, 256, 128, dtype=BF16), large(32, 128, 256, dtype=BF16), mode=_TUNED)


def linear_gelu_tuned() -> Prepared:
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
    return inference(on_gpu(model, BF16), large(512, 1024, dtype=BF16), mode=_TUNED)


def narrow_matmul_tuned() -> Prepared:
    return inference(torch.mm, large(4, 8192, dtype=F16), large(8192, 8192, dtype=F16), mode=_TUNED)


def float32_matmul_tuned() -> Prepared:
    return inference(lambda x, y: (x @ y).sigmoid(), large(512, 512), large(512, 512), mode=_TUNED)


def convolution_tuned() -> Prepared:
    return inference(on_gpu(nn.Conv2d(64, 64, 3, padding=1), F16), large(8, 64, 56, 56, dtype=F16), mode=_TUNED)


def pointwise_convolution_tuned() -> Prepared:
    return inference(on_gpu(nn.Conv2d(64, 256, 1), F16), large(8, 64, 56, 56, dtype=F16), mode=_TUNED)


def flex_attention_tuned() -> Prepared:
    states = [large(2, 8, 1024, 64, dtype=BF16) for _ in range(3)]
    return inference(lambda q, k, v: flex_attention(q, k, v), *states, mode=_TUNED)


def mlp_trained_tuned() -> Prepared:
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 256))
    return training(on_gpu(model, BF16), large(1024, 512, dtype=BF16), mode=_TUNED)


def softmax_searched() -> Prepared:
    return inference(lambda x: x.softmax(-1), large(2048, 5000, dtype=F16), options=_SEARCHED)


def norm_searched() -> Prepared:
    return inference(lambda x: F.layer_norm(x, (3072,)) * 2, large(4096, 3072, dtype=BF16), options=_SEARCHED)


def transposed_sum_searched() -> Prepared:
    return inference(lambda x, y: x.t() + y, large(3000, 2000), large(2000, 3000), options=_SEARCHED)


def unaligned_matmul() -> Prepared:
    return inference(torch.mm, large(4096, 4097, dtype=BF16), large(4097, 4099, dtype=BF16))


def unaligned_small_matmul() -> Prepared:
    return inference(torch.mm, large(1023, 513, dtype=F16), large(513, 255, dtype=F16))


def unaligned_linear() -> Prepared:
    return inference(on_gpu(nn.Linear(1025, 2047), F16), large(3001, 1025, dtype=F16))


def unaligned_batched_matmul() -> Prepared:
    return inference(torch.bmm, large(16, 511, 257, dtype=BF16), large(16, 257, 1021, dtype=BF16))


def unaligned_linear_trained() -> Prepared:
    return training(on_gpu(nn.Linear(513, 1027), BF16), large(2047, 513, dtype=BF16))
