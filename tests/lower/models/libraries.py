"""Operators that Inductor leaves to libraries, each on a line of its own."""

import torch
from torch.nn import functional


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Conv2d(4, 8, 3)
        self.narrow = torch.nn.Conv2d(8, 8, 3, groups=8)
        self.requires_grad_(False)

    def forward(self, x, a, b):
        pixels = self.dense(x)
        single = self.narrow(x.repeat(1, 2, 1, 1))
        spectrum = torch.fft.fft(a)
        factor = torch.linalg.cholesky(a @ a.t() + 64)
        solved = torch.linalg.solve_triangular(factor, a, upper=False)
        batches = torch.bmm(b, b.cos())
        tiny = torch.bmm(b[:, :2, :2], b[:, :2, :2].cos())
        half = torch.mm(a.bfloat16(), a.bfloat16())
        attention = functional.scaled_dot_product_attention(b[None], b[None], b[None])
        largest = torch.topk(a, 3).values
        return pixels, single, torch.view_as_real(spectrum), solved, batches, tiny, half, attention, largest


def get_inputs():
    return [torch.randn(2, 4, 16, 16), torch.randn(64, 64), torch.randn(4, 64, 64)]
