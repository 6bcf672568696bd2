"""Reading and writing at indices: embeddings, gathers, scatters, masks and caches."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, Prepared, inference, integers, large, on_gpu


def embedding_sum() -> Prepared:
    words, places = on_gpu(nn.Embedding(32000, 512)), on_gpu(nn.Embedding(1024, 512))
    return inference(lambda i: words(i) + places(torch.arange(i.shape[1], device=i.device)), integers(32000, 8, 512))


def embedding_bag() -> Prepared:
    return inference(on_gpu(nn.EmbeddingBag(1000, 64, mode="sum")), integers(1000, 256, 16))


def gather_rows() -> Prepared:
    return inference(lambda x, i: x[i] * 2, large(8192, 512), integers(8192, 4096))


def gather_along() -> Prepared:
    return inference(lambda x, i: x.gather(1, i).relu(), large(1024, 512), integers(512, 1024, 128))


def scatter_add_rows() -> Prepared:
    def run(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1024, x.shape[1], device=x.device).index_add(0, i, x)

    return inference(run, large(8192, 256), integers(1024, 8192))


def scatter_reduce_max() -> Prepared:
    def run(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.zeros(512, device=x.device).scatter_reduce(0, i, x, "amax")

    return inference(run, large(1 << 16), integers(512, 1 << 16))


def index_put() -> Prepared:
    def run(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        x[i] = v * 2
        return x

    return inference(run, large(4096, 128), torch.randperm(4096)[:1024].cuda(), large(1024, 128))


def masked_fill() -> Prepared:
    return inference(lambda x, m: x.masked_fill(m, -1e9).softmax(-1), large(512, 512), large(512, 512) > 0)


def one_hot() -> Prepared:
    return inference(lambda i: F.one_hot(i, 128).float() * 0.9 + 0.1 / 128, integers(128, 4096))


def cache_write() -> Prepared:
    def run(cache: torch.Tensor, new: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        cache[:, :, at] = new
        return cache.sum(-1)

    return inference(run, large(4, 8, 256, 64), large(4, 8, 1, 64), torch.tensor([17]).cuda())


def route_to_experts() -> Prepared:
    gate, weight = on_gpu(nn.Linear(256, 8)), large(8, 256, 256)

    def run(x: torch.Tensor) -> torch.Tensor:
        share, chosen = gate(x).softmax(-1).topk(2, -1)
        mixed = F.one_hot(chosen, 8).to(x.dtype) * share[..., None]
        return torch.einsum("td,edf,te->tf", x, weight, mixed.sum(1))

    return inference(run, large(1024, 256))


def bucketize() -> Prepared:
    return inference(lambda x, edges: torch.bucketize(x, edges), large(1 << 16), torch.linspace(-3, 3, 33).cuda())


def rotary_positions() -> Prepared:
    def run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        one, two = x.chunk(2, -1)
        return (x * cos + torch.cat([-two, one], -1) * sin).to(x.dtype)

    return inference(run, large(4, 16, 1024, 64, dtype=BF16), large(1024, 64), large(1024, 64))


def take_last_token() -> Prepared:
    head = on_gpu(nn.Linear(512, 1000), BF16)
    return inference(
        lambda x, n: head(x[torch.arange(x.shape[0], device=x.device), n]),
        large(16, 128, 512, dtype=BF16),
        integers(128, 16),
    )
