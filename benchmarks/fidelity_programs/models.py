"""Whole models, small: what people compile."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.attention import Block
from fidelity_programs.convolutions import ConvNorm, Residual
from fidelity_programs.kit import BF16, F16, Prepared, inference, integers, large, on_gpu, training


class Gpt(nn.Module):
    """Embedding, blocks, head."""

    def __init__(self, words: int = 4096, width: int = 256, layers: int = 2) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, i: torch.Tensor) -> torch.Tensor:
        x = self.words(i) + self.places(torch.arange(i.shape[1], device=i.device))
        return self.head(self.norm(self.blocks(x)))


class Llama(nn.Module):
    """A block with RMS norms, rotary positions, grouped heads and a gated feed-forward."""

    def __init__(self, width: int = 512, heads: int = 8, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def _turned(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.shape[-2]
        speed = 1e4 ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
        angle = torch.outer(torch.arange(tokens, device=x.device), speed)
        angle = torch.cat([angle, angle], -1)
        one, two = x.chunk(2, -1)
        return (x * angle.cos() + torch.cat([-two, one], -1) * angle.sin()).to(x.dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        y = self.first(x)
        q = self.q(y).view(batch, tokens, self.heads, self.size).transpose(1, 2)
        k, v = (part(y).view(batch, tokens, self.groups, self.size).transpose(1, 2) for part in (self.k, self.v))
        y = F.scaled_dot_product_attention(self._turned(q), self._turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, tokens, width))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Vit(nn.Module):
    """Patches, blocks, class token."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 50, width))
        self.blocks, self.head = nn.Sequential(Block(width, 3), Block(width, 3)), nn.Linear(width, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class Unet(nn.Module):
    """Two levels with a time embedding, as in diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 64))
        self.begin, self.down = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 64, 3, 2, 1)
        self.middle, self.up = Residual(64), nn.ConvTranspose2d(64, 64, 4, 2, 1)
        self.norm, self.end = nn.GroupNorm(8, 128), nn.Conv2d(128, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        angle = t[:, None] * torch.exp(torch.arange(32, device=x.device) * -0.3)
        time = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        x = self.begin(x)
        y = self.up(self.middle(self.down(x) + time[:, :, None, None]))
        return self.end(F.silu(self.norm(torch.cat([x, y], 1))))


class Mixer(nn.Module):
    """Mixes along tokens, then along channels."""

    def __init__(self, tokens: int = 64, width: int = 128) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.along = nn.Sequential(nn.Linear(tokens, 128), nn.GELU(), nn.Linear(128, tokens))
        self.across = nn.Sequential(nn.Linear(width, 256), nn.GELU(), nn.Linear(256, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.along(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across(self.second(x))


class Selective(nn.Module):
    """A state-space layer as a loop over chunks."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.inward, self.gate, self.out = (nn.Linear(width, width) for _ in range(3))
        self.decay = nn.Parameter(torch.rand(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, outputs = torch.zeros_like(x[:, 0]), []
        inward, gate = self.inward(x), self.gate(x).sigmoid()
        for at in range(x.shape[1]):
            state = state * self.decay.sigmoid() + inward[:, at]
            outputs.append(state * gate[:, at])
        return self.out(torch.stack(outputs, 1))


def gpt() -> Prepared:
    return inference(on_gpu(Gpt()), integers(4096, 4, 256))


def gpt_bfloat16() -> Prepared:
    return inference(on_gpu(Gpt(), BF16), integers(4096, 4, 256))


def gpt_trained() -> Prepared:
    model = on_gpu(Gpt(layers=1))
    return training(
        lambda i: F.cross_entropy(model(i[:, :-1]).flatten(0, 1), i[:, 1:].flatten()), integers(4096, 2, 129)
    )


def llama_block() -> Prepared:
    return inference(on_gpu(Llama(), BF16), large(4, 256, 512, dtype=BF16))


def llama_block_trained() -> Prepared:
    return training(on_gpu(Llama(), BF16), large(2, 256, 512, dtype=BF16))


def vision_transformer() -> Prepared:
    return inference(on_gpu(Vit(), F16), large(4, 3, 112, 112, dtype=F16))


def diffusion_unet() -> Prepared:
    return inference(on_gpu(Unet()), large(4, 3, 64, 64), integers(1000, 4).float())


def diffusion_unet_trained() -> Prepared:
    return training(on_gpu(Unet()), large(2, 3, 32, 32), integers(1000, 2).float())


def mixer() -> Prepared:
    return inference(on_gpu(Mixer()), large(16, 64, 128))


def mixer_trained() -> Prepared:
    return training(on_gpu(Mixer()), large(16, 64, 128))


def state_space() -> Prepared:
    return inference(on_gpu(Selective()), large(16, 12, 64))


def autoencoder() -> Prepared:
    model = nn.Sequential(
        ConvNorm(3, 16, stride=2),
        ConvNorm(16, 32, stride=2),
        nn.ConvTranspose2d(32, 16, 2, 2),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 2, 2),
        nn.Sigmoid(),
    )
    return inference(on_gpu(model), large(8, 3, 64, 64))


def recommender() -> Prepared:
    tables = nn.ModuleList(nn.Embedding(1000, 32) for _ in range(6)).cuda()
    top = on_gpu(nn.Sequential(nn.Linear(32 * 6 + 15, 64), nn.ReLU(), nn.Linear(64, 1)))

    one, other = torch.triu_indices(6, 6, 1).cuda()

    def run(i: torch.Tensor) -> torch.Tensor:
        parts = torch.stack([table(i[:, at]) for at, table in enumerate(tables)], 1)
        pairs = (parts @ parts.mT)[:, one, other]
        return top(torch.cat([parts.flatten(1), pairs], -1)).sigmoid()

    return inference(run, integers(1000, 512, 6))


def graph_convolution() -> Prepared:
    weight = on_gpu(nn.Linear(64, 64))

    def run(x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        messages = weight(x)[source]
        degree = torch.ones_like(target, dtype=x.dtype)
        summed = torch.zeros_like(x).index_add(0, target, messages)
        return (
            summed / torch.zeros(x.shape[0], device=x.device).index_add(0, target, degree).clamp(min=1)[:, None]
        ).relu()

    return inference(run, large(2048, 64), integers(2048, 16384), integers(2048, 16384))
