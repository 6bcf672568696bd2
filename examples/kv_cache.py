"""Decoding with a key/value cache: attention over all tokens so far, one new token a call.

The cache is a plain dataclass that each call returns one token longer.  So the second call meets a new size, and the
third finds code that takes any.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS = 128, 4


@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens so far, each [batch, heads, tokens, width of a head]."""

    keys: torch.Tensor
    values: torch.Tensor

    def extended(self, key, value):
        return Cache(torch.cat([self.keys, key], dim=2), torch.cat([self.values, value], dim=2))


class Model(nn.Module):
    """One attention layer that decodes a token and hands on the longer cache."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, token, cache):
        batch = token.shape[0]
        query, key, value = self.qkv(self.norm(token)).view(batch, 3, HEADS, 1, WIDTH // HEADS).unbind(1)
        cache = cache.extended(key, value)
        y = F.scaled_dot_product_attention(query, cache.keys, cache.values)
        return token + self.out(y.reshape(batch, WIDTH)), cache


def random_cache(batch, tokens):
    """What a prompt would have left behind."""
    shape = (batch, HEADS, tokens, WIDTH // HEADS)
    return Cache(torch.randn(shape), torch.randn(shape))


def get_input_sets():
    """Four steps, each with a cache that is one token longer."""
    return [(torch.randn(2, WIDTH), random_cache(2, tokens)) for tokens in (16, 17, 18, 19)]


if __name__ == "__main__":
    torch.manual_seed(0)
    decode = torch.compile(Model())
    token, cache = torch.randn(2, WIDTH), random_cache(2, 16)
    with torch.no_grad():
        for _ in range(4):
            token, cache = decode(token, cache)
            print(f"{cache.keys.shape[2]} tokens in the cache, next token's norm {token.norm():.3f}")
