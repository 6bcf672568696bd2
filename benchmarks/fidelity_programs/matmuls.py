"""Matrix products, which a library computes, and what is fused around them."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, F16, Prepared, inference, large, on_gpu


def linear_gelu_linear() -> Prepared:
    module = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
    return inference(on_gpu(module, BF16), large(4096, 1024, dtype=BF16))


def linear_float32() -> Prepared:
    return inference(on_gpu(nn.Sequential(nn.Linear(512, 512), nn.ReLU())), large(1024, 512))


def gated_feed_forward() -> Prepared:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.gate = nn.Linear(1024, 2816, bias=False), nn.Linear(1024, 2816, bias=False)
            self.down = nn.Linear(2816, 1024, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down(F.silu(self.gate(x)) * self.up(x))

    return inference(on_gpu(Gated(), BF16), large(2048, 1024, dtype=BF16))


def batched_product() -> Prepared:
    return inference(
        lambda a, b: torch.bmm(a, b).relu(), large(32, 256, 128, dtype=F16), large(32, 128, 256, dtype=F16)
    )


def batched_with_bias() -> Prepared:
    return inference(
        lambda c, a, b: torch.baddbmm(c, a, b) * 2, large(16, 128, 64), large(16, 128, 96), large(16, 96, 64)
    )


def einsum_attention_scores() -> Prepared:
    return inference(
        lambda q, k: torch.einsum("bthd,bshd->bhts", q, k).softmax(-1), large(2, 256, 8, 64), large(2, 256, 8, 64)
    )


def bilinear() -> Prepared:
    return inference(on_gpu(nn.Bilinear(64, 64, 32)), large(512, 64), large(512, 64))


def outer_product_small() -> Prepared:
    return inference(lambda a, b: (a @ b) + 1, large(2048, 1), large(1, 2048))


def matrix_vector() -> Prepared:
    return inference(lambda a, x: (a @ x).relu(), large(4096, 4096, dtype=BF16), large(4096, dtype=BF16))


def one_token() -> Prepared:
    return inference(on_gpu(nn.Linear(4096, 4096), BF16), large(1, 4096, dtype=BF16))


def transposed_operands() -> Prepared:
    return inference(lambda a, b: a.t() @ b.t() + 1, large(512, 1024), large(768, 512))


def chain_of_products() -> Prepared:
    return inference(
        lambda a, b, c: torch.linalg.multi_dot([a, b, c]).sum(-1), large(256, 512), large(512, 64), large(64, 1024)
    )


def low_rank_adapter() -> Prepared:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(1024, 1024)
            self.down, self.up = nn.Linear(1024, 16, bias=False), nn.Linear(16, 1024, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + self.up(self.down(x)) * 2

    return inference(on_gpu(Adapted(), BF16), large(2048, 1024, dtype=BF16))


def three_projections() -> Prepared:
    queries, keys, values = (on_gpu(nn.Linear(768, 768), BF16) for _ in range(3))
    return inference(lambda x: (queries(x), keys(x), values(x)), large(1024, 768, dtype=BF16))


def integer_product() -> Prepared:
    a, b = (torch.randint(-8, 8, (512, 512), dtype=torch.int8).cuda() for _ in range(2))
    return inference(lambda a, b: torch._int_mm(a, b).float() * 0.01, a, b)


def cumulative_mix() -> Prepared:
    return inference(lambda x, w: (x @ w).cumsum(-1).tanh(), large(256, 256), large(256, 512))


def determinant_and_solve() -> Prepared:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        spd = a @ a.mT + 64 * torch.eye(64, device=a.device)
        return torch.linalg.solve(spd, b).relu()

    return inference(run, large(8, 64, 64), large(8, 64, 4))


def fourier_filter() -> Prepared:
    return inference(lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5, n=x.shape[-1]).relu(), large(64, 4096))
