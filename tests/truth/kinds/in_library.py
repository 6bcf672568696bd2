"""Breaks within a third-party library: transformers, and json."""

import json

import torch
from transformers import LlamaConfig, LlamaModel


def make():
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        use_cache=True,
    )
    return LlamaModel(config).eval()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = make()

    def forward(self, ids):
        out = self.inner(input_ids=ids)
        note = json.dumps({"rows": ids.shape[0]})
        return out.last_hidden_state * len(note)


def exercise(fn):
    with torch.no_grad():
        fn(torch.randint(0, 32, (1, 5)))
        fn(torch.randint(0, 32, (1, 7)))
        fn(torch.randint(0, 32, (2, 7)))
