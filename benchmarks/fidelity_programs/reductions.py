"""Sums and their kin: rows, columns, everything, two at once, scans, sorts and losses."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, F16, Prepared, inference, integers, large, on_gpu


def row_softmax() -> Prepared:
    return inference(lambda x: x.softmax(-1), large(4096, 1024))


def long_row_softmax() -> Prepared:
    return inference(lambda x: x.softmax(-1), large(64, 131072))


def column_softmax() -> Prepared:
    return inference(lambda x: x.softmax(0), large(2048, 512))


def log_softmax_half() -> Prepared:
    return inference(lambda x: x.log_softmax(-1), large(1024, 32000, dtype=F16))


def layer_norm() -> Prepared:
    return inference(on_gpu(nn.LayerNorm(1024)), large(8192, 1024))


def layer_norm_residual() -> Prepared:
    norm = on_gpu(nn.LayerNorm(768), BF16)
    return inference(lambda x, y: norm(x + y) * 2 + x, large(4096, 768, dtype=BF16), large(4096, 768, dtype=BF16))


def rms_norm() -> Prepared:
    return inference(on_gpu(nn.RMSNorm(2048), BF16), large(4096, 2048, dtype=BF16))


def group_norm() -> Prepared:
    return inference(on_gpu(nn.GroupNorm(8, 64)), large(8, 64, 64, 64))


def instance_norm() -> Prepared:
    return inference(on_gpu(nn.InstanceNorm2d(32, affine=True)), large(8, 32, 64, 64))


def batch_norm_eval() -> Prepared:
    return inference(on_gpu(nn.BatchNorm2d(64)), large(16, 64, 56, 56))


def whole_sum() -> Prepared:
    return inference(lambda x: x.square().sum(), large(1 << 24))


def whole_mean_and_max() -> Prepared:
    return inference(lambda x: (x.mean(), x.amax()), large(2048, 2048))


def column_sum() -> Prepared:
    return inference(lambda x: x.exp().sum(0), large(16384, 512))


def middle_sum() -> Prepared:
    return inference(lambda x: x.abs().sum(1), large(64, 512, 256))


def variance_and_mean() -> Prepared:
    return inference(lambda x: torch.var_mean(x, -1), large(4096, 2048))


def argmax_and_any() -> Prepared:
    return inference(lambda x: (x.argmax(-1), (x > 3).any(-1), torch.linalg.vector_norm(x, dim=-1)), large(1024, 32768))


def minimum_with_index() -> Prepared:
    return inference(lambda x: x.min(-1), large(2048, 333))


def cumulative_sum() -> Prepared:
    return inference(lambda x: x.cumsum(-1) * 2, large(512, 4096))


def cumulative_product() -> Prepared:
    return inference(lambda x: x.sigmoid().cumprod(-1), large(512, 512))


def log_cumsum_exp() -> Prepared:
    return inference(lambda x: x.logcumsumexp(-1), large(256, 1024))


def small_sort() -> Prepared:
    return inference(lambda x: x.sort(-1), large(1024, 256))


def large_top_k() -> Prepared:
    return inference(lambda x: (x * 2).topk(8, -1), large(512, 32000))


def cross_entropy() -> Prepared:
    return inference(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), large(4096, 8192), integers(8192, 4096))


def kl_divergence() -> Prepared:
    return inference(
        lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        large(512, 4096),
        large(512, 4096),
    )


def cosine_similarity() -> Prepared:
    return inference(lambda x, y: F.cosine_similarity(x, y, dim=-1), large(4096, 768), large(4096, 768))


def pairwise_distance() -> Prepared:
    return inference(lambda x, y: (x[:, None] - y[None]).square().sum(-1).sqrt(), large(512, 64), large(384, 64))


def log_sum_exp() -> Prepared:
    return inference(lambda x: x.logsumexp(-1), large(4096, 5000))


def histogram_by_hand() -> Prepared:
    return inference(lambda x: (x[:, None] == torch.arange(64, device=x.device)).sum(0), integers(64, 1 << 16))


def nested_reductions() -> Prepared:
    return inference(lambda x: (x - x.mean((1, 2), keepdim=True)).square().mean((1, 2)).sqrt(), large(256, 64, 96))


def odd_sizes() -> Prepared:
    return inference(lambda x: x.softmax(-1).sum(0), large(1013, 1021))
