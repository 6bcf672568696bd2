"""Convolutions, which cuDNN computes, and the pooling and normalisation around them."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, F16, Prepared, inference, large, on_gpu


class ConvNorm(nn.Module):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, channels: int, out: int, kernel: int = 3, **options: int | bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, padding=kernel // 2, **options)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


class Residual(nn.Module):
    """Two of them with a shortcut."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.first = ConvNorm(channels, channels, bias=False)
        self.second, self.norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.norm(self.second(self.first(x))))


class ResNet(nn.Module):
    """A stem, two residual blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, 64, 7, stride=2)
        self.blocks, self.head = nn.Sequential(Residual(), Residual()), nn.Linear(64, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(F.max_pool2d(self.stem(x), 3, 2, 1))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def conv_norm_relu() -> Prepared:
    return inference(on_gpu(ConvNorm(16, 32)), large(8, 16, 64, 64))


def conv_norm_channels_last() -> Prepared:
    module = on_gpu(ConvNorm(16, 32), F16).to(memory_format=torch.channels_last)
    return inference(module, large(8, 16, 64, 64, dtype=F16).to(memory_format=torch.channels_last))


def small_resnet() -> Prepared:
    return inference(on_gpu(ResNet()), large(4, 3, 128, 128))


def small_resnet_bfloat16() -> Prepared:
    return inference(on_gpu(ResNet(), BF16), large(4, 3, 128, 128, dtype=BF16))


def depthwise_separable() -> Prepared:
    module = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.SiLU(), nn.Conv2d(64, 128, 1), nn.SiLU())
    return inference(on_gpu(module), large(8, 64, 56, 56))


def one_by_one() -> Prepared:
    return inference(on_gpu(nn.Sequential(nn.Conv2d(128, 256, 1), nn.ReLU())), large(8, 128, 28, 28))


def dilated() -> Prepared:
    return inference(
        on_gpu(nn.Sequential(nn.Conv2d(8, 8, 3, dilation=2, padding=2), nn.Sigmoid())), large(4, 8, 64, 64)
    )


def transposed() -> Prepared:
    return inference(
        on_gpu(nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.LeakyReLU(0.1))), large(4, 32, 32, 32)
    )


def one_dimension() -> Prepared:
    return inference(
        on_gpu(nn.Sequential(nn.Conv1d(80, 128, 3, padding=1), nn.GELU(), nn.Conv1d(128, 128, 3, 2, 1))),
        large(8, 80, 1000),
    )


def three_dimensions() -> Prepared:
    return inference(
        on_gpu(nn.Sequential(nn.Conv3d(4, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2))), large(2, 4, 16, 32, 32)
    )


def squeeze_and_excite() -> Prepared:
    down, up = on_gpu(nn.Conv2d(64, 16, 1)), on_gpu(nn.Conv2d(16, 64, 1))
    return inference(lambda x: x * up(down(x.mean((2, 3), keepdim=True)).relu()).sigmoid(), large(8, 64, 56, 56))


def down_and_up() -> Prepared:
    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.norm = ConvNorm(8, 16, stride=2), nn.GroupNorm(4, 16)
            self.up = nn.ConvTranspose2d(16, 8, 2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.up(self.norm(self.down(x))), x], 1).sigmoid()

    return inference(on_gpu(UNet()), large(4, 8, 64, 64))


def average_and_max_pool() -> Prepared:
    return inference(lambda x: F.avg_pool2d(x, 3, 2, 1) + F.max_pool2d(x, 3, 2, 1), large(8, 32, 64, 64))


def adaptive_pools() -> Prepared:
    return inference(lambda x: (F.adaptive_avg_pool2d(x, 7), F.adaptive_max_pool2d(x, 4)), large(8, 32, 56, 56))


def patch_embedding() -> Prepared:
    conv, norm = on_gpu(nn.Conv2d(3, 384, 16, 16), BF16), on_gpu(nn.LayerNorm(384), BF16)
    return inference(lambda x: norm(conv(x).flatten(2).transpose(1, 2)), large(8, 3, 224, 224, dtype=BF16))


def convnext_block() -> Prepared:
    class ConvNext(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.deep, self.norm = nn.Conv2d(96, 96, 7, padding=3, groups=96), nn.LayerNorm(96)
            self.up, self.down = nn.Linear(96, 384), nn.Linear(384, 96)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.down(F.gelu(self.up(self.norm(self.deep(x).permute(0, 2, 3, 1)))))
            return x + y.permute(0, 3, 1, 2)

    return inference(on_gpu(ConvNext()), large(4, 96, 56, 56))
