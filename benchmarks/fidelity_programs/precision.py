"""Number formats: autocast, fp8, TF32, complex, and casts around library calls."""

import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.attention import Block
from fidelity_programs.convolutions import ConvNorm
from fidelity_programs.kit import BF16, F16, Prepared, inference, large, on_gpu, training, whole


def _autocast(module: nn.Module, dtype: torch.dtype):  # type: ignore[no-untyped-def]
    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=dtype):
            return module(x)

    return run


def block_autocast_bfloat16() -> Prepared:
    return inference(_autocast(on_gpu(Block()), BF16), large(4, 256, 512))


def block_autocast_half() -> Prepared:
    return inference(_autocast(on_gpu(Block()), F16), large(4, 256, 512))


def block_autocast_trained() -> Prepared:
    return training(_autocast(on_gpu(Block()), BF16), large(2, 256, 512))


def conv_autocast() -> Prepared:
    return inference(_autocast(on_gpu(ConvNorm(16, 32)), F16), large(8, 16, 64, 64))


def scaled_fp8_product() -> Prepared:
    fp8 = torch.float8_e4m3fn

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        one = torch.ones((), device=a.device)
        return torch._scaled_mm(a.to(fp8), b.to(fp8).t(), scale_a=one, scale_b=one, out_dtype=BF16).relu()

    return inference(run, large(512, 512, dtype=BF16), large(768, 512, dtype=BF16))


def fp8_quantised_rows() -> Prepared:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(-1, keepdim=True).float() / 448.0
        return (x / scale).to(torch.float8_e4m3fn), scale

    return inference(run, large(2048, 1024, dtype=BF16))


def tf32_allowed() -> Prepared:
    module, x = on_gpu(nn.Linear(512, 512)), large(1024, 512)

    def run() -> list[float]:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            with torch.no_grad():
                torch.compile(lambda x: module(x).relu())(x)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        return []

    return whole(run)


def complex_multiply() -> Prepared:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y)) * 2

    return inference(run, large(512, 256, 2), large(512, 256, 2))


def norm_in_float32() -> Prepared:
    norm = on_gpu(nn.LayerNorm(512))
    return inference(lambda x: F.relu(norm(x.float()).to(BF16)), large(1024, 512, dtype=BF16))


def loss_scaled() -> Prepared:
    module = on_gpu(nn.Linear(256, 64))

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=F16):
            return module(x).square().mean() * 1024

    return training(run, large(512, 256))


def weight_only_int8() -> Prepared:
    weight, scale = torch.randint(-128, 127, (512, 512), dtype=torch.int8).cuda(), large(512, dtype=BF16)
    return inference(lambda x: F.linear(x, weight.to(x.dtype)) * scale, large(64, 512, dtype=BF16))
