"""Two products that Inductor would time several ways to compute, all of them templates."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 512)
        self.requires_grad_(False)

    def forward(self, x):
        hidden = self.linear(x).relu()
        return torch.mm(hidden, hidden.t()) * 2


def get_inputs():
    return [torch.randn(128, 256)]


COMPILE_KWARGS = {"options": {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}}
