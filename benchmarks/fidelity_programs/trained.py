"""Forward and backward of what is trained."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from fidelity_programs.attention import Block, ByHand
from fidelity_programs.convolutions import ConvNorm, ResNet
from fidelity_programs.kit import BF16, F16, Prepared, integers, large, on_gpu, training


class _Mlp(nn.Sequential):
    def __init__(self, *widths: int, dropout: float = 0.0) -> None:
        layers: list[nn.Module] = []
        for width, following in pairwise(widths):
            layers += [nn.Linear(width, following), nn.GELU(), nn.Dropout(dropout)]
        super().__init__(*layers)


def _leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return large(*sizes, dtype=dtype).requires_grad_()


def mlp() -> Prepared:
    return training(on_gpu(_Mlp(256, 512, 128)), large(1024, 256))


def mlp_bfloat16() -> Prepared:
    return training(on_gpu(_Mlp(512, 2048, 512), BF16), large(2048, 512, dtype=BF16))


def mlp_dropout() -> Prepared:
    return training(on_gpu(_Mlp(256, 512, 128, dropout=0.1)), large(1024, 256))


def block() -> Prepared:
    return training(on_gpu(Block()), large(2, 256, 512))


def block_bfloat16() -> Prepared:
    return training(on_gpu(Block(), BF16), large(2, 256, 512, dtype=BF16))


def block_dropout() -> Prepared:
    return training(on_gpu(Block(dropout=0.1), BF16), large(2, 256, 512, dtype=BF16))


def block_by_hand() -> Prepared:
    return training(on_gpu(ByHand()), large(2, 128, 512))


def conv_norm() -> Prepared:
    return training(on_gpu(ConvNorm(16, 32)), large(8, 16, 64, 64))


def small_resnet() -> Prepared:
    return training(on_gpu(ResNet()), large(4, 3, 96, 96))


def small_resnet_channels_last() -> Prepared:
    x = large(4, 3, 96, 96, dtype=F16).to(memory_format=torch.channels_last)
    return training(on_gpu(ResNet(), F16).to(memory_format=torch.channels_last), x)


def layer_norm() -> Prepared:
    return training(on_gpu(nn.LayerNorm(1024)), _leaf(2048, 1024))


def rms_norm() -> Prepared:
    return training(on_gpu(nn.RMSNorm(1024), BF16), _leaf(2048, 1024, dtype=BF16))


def group_norm() -> Prepared:
    return training(on_gpu(nn.GroupNorm(8, 64)), _leaf(4, 64, 32, 32))


def batch_norm() -> Prepared:
    return training(on_gpu(nn.BatchNorm2d(32)), _leaf(8, 32, 32, 32))


def softmax_rows() -> Prepared:
    return training(lambda x: x.softmax(-1).square(), _leaf(1024, 2048))


def cross_entropy_head() -> Prepared:
    head = on_gpu(nn.Linear(512, 8192), BF16)
    return training(
        lambda x, y: F.cross_entropy(head(x).float(), y), large(1024, 512, dtype=BF16), integers(8192, 1024)
    )


def embedding() -> Prepared:
    table, norm = on_gpu(nn.Embedding(4096, 256)), on_gpu(nn.LayerNorm(256))
    return training(lambda i: norm(table(i)), integers(4096, 8, 256))


def rotary() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        angle = torch.outer(torch.arange(256, device=x.device), 1e4 ** (-torch.arange(0, 64, 2, device=x.device) / 64))
        angle = torch.cat([angle, angle], -1)
        one, two = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-two, one], -1) * angle.sin()

    return training(run, _leaf(2, 8, 256, 64))


def checkpointed() -> Prepared:
    module = on_gpu(_Mlp(256, 512, 256))
    return training(lambda x: checkpoint(module, x, use_reentrant=False), _leaf(1024, 256))


def own_gradient() -> Prepared:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    return training(lambda x: Cube.apply(x).relu(), _leaf(1024, 512))


def gather() -> Prepared:
    return training(lambda x, i: x.gather(1, i).exp(), _leaf(512, 512), integers(512, 512, 64))


def max_pool() -> Prepared:
    return training(lambda x: F.max_pool2d(x.relu(), 3, 2, 1), _leaf(8, 32, 64, 64))


def upsample() -> Prepared:
    return training(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False).relu(), _leaf(4, 16, 32, 32)
    )


def tied_weights() -> Prepared:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(2048, 256)
            self.head = nn.Linear(256, 2048, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(i).tanh())

    return training(on_gpu(Tied()), integers(2048, 8, 64))


def scan_gradient() -> Prepared:
    return training(lambda x: x.cumsum(-1).sigmoid(), _leaf(256, 1024))


def contrastive_loss() -> Prepared:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        scores = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() * 14.0
        labels = torch.arange(a.shape[0], device=a.device)
        return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels)) / 2

    return training(run, _leaf(256, 512), _leaf(256, 512))
