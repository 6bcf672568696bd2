"""Element by element: arithmetic, broadcasting, selection, casts, and many outputs."""

import torch
import torch.nn.functional as F

from fidelity_programs.kit import BF16, F16, Prepared, inference, large


def gelu_times_sigmoid() -> Prepared:
    return inference(lambda x, y: F.gelu(x) * y.sigmoid() + x.tanh(), large(4096, 4096), large(4096, 4096))


def gelu_tanh_form() -> Prepared:
    return inference(lambda x: F.gelu(x, approximate="tanh") * 0.5, large(2048, 3072, dtype=BF16))


def swiglu() -> Prepared:
    return inference(lambda a, b: F.silu(a) * b, large(8192, 4096, dtype=BF16), large(8192, 4096, dtype=BF16))


def broadcast_where() -> Prepared:
    def run(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.where(x > b, x.clamp(-1, 1).exp(), (x * b).abs().sqrt())

    return inference(run, large(2048, 8192), large(8192))


def outer_broadcast() -> Prepared:
    return inference(lambda a, b, c: (a[:, None] * b[None, :] + c).relu(), large(3000), large(5000), large(3000, 5000))


def scalar_arguments() -> Prepared:
    return inference(lambda x, s: x * s + s * 2.0, large(1 << 20), 0.37)


def integer_bit_tricks() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        return ((x << 3) ^ (x >> 1)) & 0xFF | (x % 7)

    return inference(run, torch.arange(1 << 20, device="cuda"))


def many_outputs() -> Prepared:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sin(), x.cos(), x.exp(), x.log1p(), x.rsqrt(), x.erf()

    return inference(run, large(1024, 2048))


def many_inputs() -> Prepared:
    return inference(lambda *xs: sum(x * (i + 1) for i, x in enumerate(xs)), *(large(1 << 18) for _ in range(24)))


def mixed_dtypes() -> Prepared:
    def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return (a.float() * b + c).to(BF16)

    return inference(run, large(512, 4096, dtype=BF16), large(512, 4096), large(4096, dtype=F16))


def special_functions() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        return (
            torch.lgamma(x.abs() + 1) + torch.special.i0(x) + torch.erfinv(x.tanh() * 0.9) + torch.digamma(x.abs() + 1)
        )

    return inference(run, large(1 << 18))


def sine_positions() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(x.shape[0], device=x.device)[:, None] / 10000 ** torch.linspace(0, 1, 256, device=x.device)
        return x + torch.cat([at.sin(), at.cos()], -1)

    return inference(run, large(2048, 512))


def double_precision() -> Prepared:
    return inference(lambda x: x.double().exp().mul(3.0).float(), large(1 << 20))


def boolean_logic() -> Prepared:
    return inference(lambda a, b: (a & ~b) | (a ^ b), large(1 << 20) > 0, large(1 << 20) > 0)


def in_place_on_input() -> Prepared:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(y)
        return x.relu()

    return inference(run, large(1 << 20), large(1 << 20))


def dropout_drawn() -> Prepared:
    return inference(lambda x: F.dropout(x, 0.2, training=True) + 1, large(4096, 1024))


def random_in_graph() -> Prepared:
    return inference(lambda x: x + torch.rand_like(x) * torch.randn_like(x), large(1 << 20))


def quantise_and_back() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True) / 127
        return (x / scale).round().clamp(-128, 127).to(torch.int8).float() * scale

    return inference(run, large(2048, 1024))


def lerp_and_polynomial() -> Prepared:
    return inference(
        lambda x, y: torch.lerp(x, y, 0.3).pow(3) - torch.addcmul(x, x, y, value=0.1), large(999, 777), large(999, 777)
    )


def one_element() -> Prepared:
    return inference(lambda x: (x + 1).sqrt(), large(1).abs())
