"""A kernel made from a template, with something before and after it."""

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention


def further_is_less(score, batch, head, query, key):
    return score - (query - key).abs() * 0.1


class Model(nn.Module):
    @torch.no_grad()
    def forward(self, q, k, v):
        mixed = flex_attention(q, k, v, score_mod=further_is_less)
        return mixed.relu()


def get_inputs():
    return [torch.randn(1, 2, 128, 64) for _ in range(3)]
