"""Bytes and floating-point operations of kernels, against counts by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from inductoscope.protocol.report import KernelLanguage
from lower.support.driver import lower

pytestmark = pytest.mark.slow
F32, BF16, I64 = 4, 2, 8


@dataclass(frozen=True)
class Cost:
    """What one kernel reads and writes, in bytes, and its operations; None where nobody counts them."""

    read: int
    written: int
    flops: int | None = None


def sizes(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(shape) for shape in shapes)


PROGRAMS: dict[str, tuple[Any, tuple[torch.Tensor, ...], list[Cost]]] = {
    "a product and a sum": (
        lambda x, w, b: torch.addmm(b, x, w),
        sizes((32, 64), (64, 16), (16,)),
        [Cost((32 * 64 + 64 * 16 + 16) * F32, 32 * 16 * F32, 2 * 32 * 64 * 16)],
    ),
    "products of a part of a tensor": (
        lambda b: torch.bmm(b[:, :2, :2], b[:, :2, :2]),
        sizes((4, 64, 64)),
        [Cost(4 * 2 * 2 * F32, 4 * 2 * 2 * F32, 2 * 4 * 2 * 2 * 2)],
    ),
    "batches added": (
        lambda c, a, b: torch.baddbmm(c, a, b),  # noqa: PLW0108 (torch.compile takes no builtin)
        sizes((4, 8, 8), (4, 8, 16), (4, 16, 8)),
        [Cost(4 * (8 * 8 + 2 * 8 * 16) * F32, 4 * 8 * 8 * F32, 2 * 4 * 8 * 8 * 16)],
    ),
    "a row for each": (
        lambda x, y: x + y[:, None],
        sizes((64, 32), (64,)),
        [Cost((64 * 32 + 64) * F32, 64 * 32 * F32)],
    ),
    "a part of each row": (
        lambda x: x[:, :8].relu() + 1,
        sizes((64, 32)),
        [Cost(64 * 8 * F32, 64 * 8 * F32)],
    ),
    "another type": (
        lambda x, y: x.to(torch.bfloat16) + y,
        (torch.randn(64, 32), torch.randn(64, 32).bfloat16()),
        [Cost(64 * 32 * (F32 + BF16), 64 * 32 * BF16)],
    ),
    "rows by number": (
        lambda x, i: x[i] * 2,
        (torch.randn(1000, 32), torch.arange(10)),
        [Cost(10 * I64 + 10 * 32 * F32, 10 * 32 * F32)],
    ),
    "one input, several results": (
        lambda x: (x.sin(), x.cos(), x.sum()),
        sizes((64, 32)),
        [Cost(64 * 32 * F32, (2 * 64 * 32 + 1) * F32)],
    ),
    "in place": (
        lambda x: x.add_(1),
        sizes((64, 32)),
        [Cost(64 * 32 * F32, 64 * 32 * F32)],
    ),
    "attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),  # noqa: PLW0108
        sizes((1, 4, 64, 32), (1, 4, 16, 32), (1, 4, 16, 32)),
        [Cost(4 * (64 + 2 * 16) * 32 * F32, 4 * 64 * 32 * F32, 2 * 4 * 64 * 16 * (32 + 32))],
    ),
    "only views": (lambda x: (x.t(), x[1:3], x.view(-1)), sizes((16, 16)), []),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_costs(name):
    program, arguments, wanted = PROGRAMS[name]
    with torch.no_grad():
        facts = lower(lambda: torch.compile(program)(*arguments))
    assert facts.problems == ()
    assert [Cost(k.bytes_read, k.bytes_written, k.flops) for k in facts.kernels] == wanted


def test_a_convolution_by_torchs_own_formula():
    with torch.no_grad():
        facts = lower(lambda: torch.compile(functional.conv2d)(*sizes((2, 3, 16, 16), (8, 3, 3, 3))))
    (call,) = [kernel for kernel in facts.kernels if kernel.language.value == "extern"]
    assert call.flops == 2 * (2 * 8 * 14 * 14) * (3 * 3 * 3)
    assert (call.bytes_read, call.bytes_written) == ((2 * 3 * 16 * 16 + 8 * 27) * F32, 2 * 8 * 14 * 14 * F32)


class Frozen(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.product = torch.nn.Linear(64, 128)
        self.image = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.product(x), torch.relu(self.image(image))


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="a build without oneDNN fuses nothing into it")
def test_fused_library_calls_of_a_frozen_graph_tell_all_their_operators_and_what_they_cost():
    model = Frozen().eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        facts = lower(lambda: torch.compile(model)(torch.randn(17, 64), torch.randn(2, 3, 16, 16)))
    assert facts.problems == ()
    found = {group.kernel: (group, kernel) for group, kernel in zip(facts.fusion_groups, facts.kernels, strict=True)}
    group, kernel = found["torch.ops.mkldnn._convolution_pointwise.default"]
    assert [op.op for op in group.ops] == ["aten.convolution", "aten.relu"]
    assert {op.line for op in group.ops} == {place.line for place in kernel.lines}
    assert group.fusion == "vertical"
    assert kernel.flops == 2 * (2 * 8 * 16 * 16) * (3 * 3 * 3)
    if torch.backends.mkl.is_available():
        assert found["torch.ops.mkl._mkl_linear.default"][1].flops == 2 * 17 * 64 * 128


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="products are packed by MKL")
def test_a_product_that_is_written_by_a_cpp_template_is_a_kernel_with_source_line_and_cost():
    product = torch.nn.Linear(64, 128).eval()

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(product(x))

    settings = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    with torch.no_grad(), torch._inductor.config.patch(settings):
        facts = lower(lambda: torch.compile(program)(torch.randn(17, 64)))
    (kernel,) = facts.kernels
    assert (kernel.language, kernel.library) == (KernelLanguage.CPP, "C++ template")
    assert kernel.source is not None and 'extern "C"' in kernel.source
    assert {place.line for place in kernel.lines} == {program.__code__.co_firstlineno + 1}
    assert kernel.flops == 2 * 17 * 64 * 128
    assert facts.fusion_groups[0].fusion == "template-epilogue"
