"""A two-layer Llama with random weights, straight from the `transformers` package.

All model code lives in site-packages.  With transformers 5.24 and torch 2.13 the whole model is one graph without a
break; the second prompt has another length, which compiles it once more, from then on for any length.
"""

import torch

try:
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as error:
    raise ImportError("examples/llama_tiny.py needs the transformers package: pip install transformers") from error

CONFIG = LlamaConfig(
    vocab_size=1024,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
)


class Model(torch.nn.Module):
    """Logits of the next token for each position of a prompt."""

    def __init__(self):
        super().__init__()
        self.llama = LlamaForCausalLM(CONFIG)

    def forward(self, tokens):
        return self.llama(tokens).logits


def get_input_sets():
    """Prompts of two lengths."""
    return [(torch.randint(CONFIG.vocab_size, (1, length)),) for length in (24, 40)]


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.compile(Model().eval())
    with torch.no_grad():
        for (tokens,) in get_input_sets():
            logits = model(tokens)
            print(f"{tokens.shape[1]} tokens: most likely next token {int(logits[0, -1].argmax())}")
