"""Attention in its forms: every backend of scaled_dot_product_attention, by hand, windows, and flex attention."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, F16, F32, Prepared, inference, large, on_gpu


class Block(nn.Module):
    """A pre-norm transformer block; `attend` is what differs."""

    def __init__(self, width: int = 512, heads: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in parts)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class ByHand(Block):
    """The same with the attention written out."""

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v


def _qkv(batch: int, heads: int, tokens: int, head: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return tuple(large(batch, heads, tokens, head, dtype=dtype) for _ in range(3))


def block_float32() -> Prepared:
    return inference(on_gpu(Block()), large(4, 256, 512))


def block_bfloat16() -> Prepared:
    return inference(on_gpu(Block(), BF16), large(4, 256, 512, dtype=BF16))


def block_half() -> Prepared:
    return inference(on_gpu(Block(), F16), large(4, 256, 512, dtype=F16))


def block_by_hand() -> Prepared:
    return inference(on_gpu(ByHand()), large(4, 256, 512))


def block_by_hand_bfloat16() -> Prepared:
    return inference(on_gpu(ByHand(), BF16), large(4, 256, 512, dtype=BF16))


def causal_float32() -> Prepared:
    return inference(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2, *_qkv(2, 8, 512, 64, F32)
    )


def causal_head_256() -> Prepared:
    return inference(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *_qkv(2, 4, 512, 256, BF16)
    )


def odd_head_size() -> Prepared:
    return inference(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *_qkv(2, 8, 256, 72, F16))


def boolean_mask() -> Prepared:
    mask = torch.ones(512, 512, dtype=torch.bool).tril().cuda()
    return inference(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), *_qkv(2, 8, 512, 64, BF16), mask
    )


def additive_mask() -> Prepared:
    return inference(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        *_qkv(2, 8, 256, 64, F16),
        large(2, 1, 256, 256, dtype=F16),
    )


def grouped_queries() -> Prepared:
    q, k, v = large(2, 16, 256, 64, dtype=BF16), large(2, 4, 256, 64, dtype=BF16), large(2, 4, 256, 64, dtype=BF16)
    return inference(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), q, k, v)


def cross_attention() -> Prepared:
    module = on_gpu(nn.MultiheadAttention(256, 8, batch_first=True), BF16)
    return inference(
        lambda x, y: module(x, y, y, need_weights=False)[0],
        large(4, 128, 256, dtype=BF16),
        large(4, 384, 256, dtype=BF16),
    )


def encoder_layer() -> Prepared:
    return inference(on_gpu(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)), large(4, 128, 256))


def one_query() -> Prepared:
    q, k, v = large(8, 16, 1, 128, dtype=BF16), large(8, 16, 1024, 128, dtype=BF16), large(8, 16, 1024, 128, dtype=BF16)
    return inference(lambda q, k, v: F.scaled_dot_product_attention(q, k, v) + 1, q, k, v)


def relative_bias() -> Prepared:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT * 0.125 + bias).softmax(-1) @ v

    return inference(run, *_qkv(4, 8, 128, 64, F32), large(8, 128, 128))


def linear_attention() -> Prepared:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])

    return inference(run, *_qkv(2, 8, 512, 64, F32))


def flex_causal() -> Prepared:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    blocks = create_block_mask(lambda b, h, q, k: q >= k, None, None, 512, 512, device="cuda")
    return inference(lambda q, k, v: flex_attention(q, k, v, block_mask=blocks), *_qkv(2, 4, 512, 64, BF16))


def flex_with_bias() -> Prepared:
    from torch.nn.attention.flex_attention import flex_attention

    def biased(score, b, h, q, k):  # type: ignore[no-untyped-def]
        return score + (q - k) * 0.01

    return inference(lambda q, k, v: flex_attention(q, k, v, score_mod=biased), *_qkv(2, 4, 256, 64, F16))
