"""Operations that have nothing to do with each other, and may share a launch."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b, c, d):
        return a.sin() + 1, b.cos() * 2, c.relu().sum(-1), d.exp()


def get_inputs():
    return [torch.randn(64, 64), torch.randn(32, 128), torch.randn(16, 16), torch.randn(700)]


COMPILE_KWARGS = {"options": {"combo_kernels": True}}
