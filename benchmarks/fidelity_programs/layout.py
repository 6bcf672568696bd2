"""Where elements lie: transposes, slices, concatenation, padding, rolling and windows."""

import torch
import torch.nn.functional as F

from fidelity_programs.kit import BF16, Prepared, inference, large


def transpose_and_add() -> Prepared:
    return inference(lambda x, y: (x.t() + y).contiguous(), large(4096, 2048), large(2048, 4096))


def cat_split_roll() -> Prepared:
    return inference(lambda x: torch.cat([x[:, ::2].roll(1, 0), x[:, 1::2] * 2], 1), large(2048, 4096))


def cat_of_many() -> Prepared:
    return inference(lambda *xs: torch.cat([x.relu() for x in xs], -1), *(large(512, 64 * (i + 1)) for i in range(6)))


def pad_and_unfold() -> Prepared:
    return inference(lambda x: F.pad(x, (1, 1)).unfold(-1, 3, 1).sum(-1), large(512, 16384))


def reflect_pad() -> Prepared:
    return inference(lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect") * 2, large(4, 8, 128, 128))


def permute_chain() -> Prepared:
    return inference(
        lambda x: x.permute(0, 2, 3, 1).reshape(8, -1, 64).transpose(1, 2).contiguous() + 1, large(8, 64, 32, 32)
    )


def flip_and_stack() -> Prepared:
    return inference(lambda x: torch.stack([x.flip(0), x.flip(1)], 1), large(512, 512))


def diagonal_and_triangle() -> Prepared:
    return inference(lambda x: x.tril() + x.triu(1).t() + torch.diag_embed(x.diagonal()), large(1024, 1024))


def repeat_interleave_fixed() -> Prepared:
    return inference(lambda x: x.repeat_interleave(4, 1) * x.repeat(1, 4), large(512, 512))


def pixel_shuffle() -> Prepared:
    return inference(lambda x: F.pixel_shuffle(x, 2).relu(), large(4, 64, 64, 64))


def windows() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        b, h, w, c = x.shape
        x = x.view(b, h // 8, 8, w // 8, 8, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 64, c)
        return x * x.mean(1, keepdim=True)

    return inference(run, large(4, 64, 64, 96, dtype=BF16))


def strided_input() -> Prepared:
    return inference(lambda x: x * 2 + 1, large(2048, 4096)[:, ::3])


def expand_and_reduce() -> Prepared:
    return inference(
        lambda x: (x[:, None].expand(-1, 16, -1) * torch.arange(16, device=x.device)[:, None]).sum(1), large(512, 512)
    )


def meshgrid_sample() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        ys, xs = torch.meshgrid(
            torch.linspace(-1, 1, 64, device=x.device), torch.linspace(-1, 1, 64, device=x.device), indexing="ij"
        )
        return F.grid_sample(x, torch.stack([xs, ys], -1).expand(x.shape[0], -1, -1, -1), align_corners=False)

    return inference(run, large(4, 16, 64, 64))


def upsample_bilinear() -> Prepared:
    return inference(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), large(4, 32, 64, 64)
    )


def upsample_nearest() -> Prepared:
    return inference(lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest") + 1, large(4, 32, 64, 64))
