"""What a kernel is kept under: everything that decides the code counts, its number among the kernels does not."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("triton")

from inductoscope.compiler.assembling import keys
from inductoscope.protocol import devices, kernel_store

pytestmark = pytest.mark.slow  # imports torch and Triton

SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics

@triton_heuristics.pointwise(size_hints={'x': 64}, inductor_meta={'kernel_name': 'triton_poi_fused_add_3'})
@triton.jit
def triton_poi_fused_add_3(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    pass
"""


def test_a_renumbered_kernel_keeps_its_key() -> None:
    compiler = keys.toolchain(devices.find("H200"))
    renumbered = SOURCE.replace("add_3", "add_12")
    assert kernel_store.own_name(renumbered) == "triton_poi_fused_add_12"
    assert keys.key(SOURCE, compiler) == keys.key(renumbered, compiler)


@pytest.mark.parametrize("old, new", [("64", "128"), ("pass", "return"), ("in_ptr0", "in_ptr1")])
def test_another_text_is_another_kernel(old: str, new: str) -> None:
    compiler = keys.toolchain(devices.find("H200"))
    assert keys.key(SOURCE, compiler) != keys.key(SOURCE.replace(old, new), compiler)


def test_each_device_has_its_own() -> None:
    found = {keys.key(SOURCE, keys.toolchain(device)) for device in devices.DEVICES}
    assert len(found) == len(devices.DEVICES)


def test_limits_of_the_device_count_because_inductor_chooses_by_them() -> None:
    device = devices.find("H200")
    smaller = dataclasses.replace(device, multiprocessors=device.multiprocessors // 2)
    assert keys.key(SOURCE, keys.toolchain(device)) != keys.key(SOURCE, keys.toolchain(smaller))


def test_the_compiler_s_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys.key(SOURCE, keys.toolchain(devices.find("H200")))
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    assert keys.key(SOURCE, keys.toolchain(devices.find("H200"))) != before


@pytest.mark.parametrize(
    "line", ["import helpers", "from my.package import f", "from . import f", "import torch, helpers", "def broken("]
)
def test_a_kernel_with_imports_that_may_change_has_no_key(line: str) -> None:
    compiler = keys.toolchain(devices.find("H200"))
    assert keys.key(f"{line}\n{SOURCE}", compiler) is None
    assert keys.key_of_this_run(f"{line}\n{SOURCE}", compiler) != keys.key_of_this_run(SOURCE, compiler)


def test_what_the_compiler_is_is_told() -> None:
    nvidia, amd = keys.toolchain(devices.find("H200")).known, keys.toolchain(devices.find("MI300X")).known
    assert nvidia.ptxas is not None
    assert nvidia.ptxas[0].isdigit()
    assert amd.ptxas is None
    assert amd.disassembler is None
    assert nvidia.triton == amd.triton
