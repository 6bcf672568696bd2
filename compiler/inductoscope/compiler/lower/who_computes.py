"""Who computes a kernel that Inductor did not write itself: cuBLAS, cuDNN, FlashAttention, oneDNN, …

Only what is certain from the operator, its backend and the build of torch; `ATen` stands for torch's own kernels and
for what cannot be told from outside.  Each rule names the file of torch's sources that it is read from (2.13; the same
in 2.11 and 2.12).  It knows nothing of scheduling.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch

from inductoscope.compiler.compat import inductor
from inductoscope.compiler.compat import libraries as compat
from inductoscope.compiler.lower.recording import Call
from inductoscope.protocol.devices import Device

ATEN = "ATen"

# AMD builds have the same operators with other libraries behind them (`torch/utils/hipify/cuda_to_hip_mappings.py`).
_ON_AMD = {
    "cuBLAS": "hipBLAS",
    "cuBLASLt": "hipBLASLt",
    "cuDNN": "MIOpen",
    "cuFFT": "hipFFT",
    "cuSPARSELt": "hipSPARSELt",
    "cuSOLVER or MAGMA": "hipSOLVER or MAGMA",
    "cuBLAS or MAGMA": "hipBLAS or MAGMA",
    "cuRAND (Philox)": "hipRAND (Philox)",
    "FlashAttention": "AOTriton or CK",  # aten/src/ATen/native/transformers/hip
    "memory-efficient attention (CUTLASS)": "AOTriton or CK",
    "CUTLASS": ATEN,
}
_TEMPLATES = {
    "TritonTemplateBuffer": "Triton template",
    "CUTLASSTemplateBuffer": "CUTLASS template",
    "CUDATemplateBuffer": "CUTLASS template",
    "CppTemplateBuffer": "C++ template",
    "CKTemplateBuffer": "CK template",
    "ROCmTemplateBuffer": "CK template",
    "CuteDSLTemplateBuffer": "CuTe DSL template",
}
_NAMESPACES = {"mkldnn": "oneDNN", "onednn": "oneDNN", "mkl": "MKL"}  # aten/src/ATen/native/mkldnn, native/mkl
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "vdot", "_addmm_activation"})
# aten/src/ATen/native/BatchLinearAlgebra.cpp and native/cuda/linalg: factorisations; triangular solves are BLAS.
_FACTORISATIONS = re.compile(
    r"_?linalg_(?:cholesky|lu|svd|eigh?|eigvals|qr|inv|solve_ex|ldl|det|slogdet|lstsq|householder)"
    r"|cholesky|geqrf|ormqr|linalg_lu_solve"
)
_TRIANGULAR = frozenset({"linalg_solve_triangular", "triangular_solve"})
# aten/src/ATen/native/cuda/Distribution*.cu and Dropout.cu draw through cuRAND's device functions.
_RANDOM = re.compile(r"(?:rand|randn|randint)(?:_like)?$|(?:bernoulli|normal|uniform|exponential|log_normal|cauchy)_?$")
_CONVOLUTIONS = {  # c10: aten/src/ATen/native/Convolution.cpp, the backends of `select_conv_backend`
    "Cudnn": "cuDNN", "CudnnTranspose": "cuDNN", "Miopen": "MIOpen", "MiopenDepthwise": "MIOpen",
    "MiopenTranspose": "MIOpen", "Mkldnn": "oneDNN", "MkldnnTranspose": "oneDNN", "NnpackSpatial": "NNPACK",
    "Xnnpack2d": "XNNPACK",
}  # fmt: skip
_COLLECTIVES = {"nccl": "NCCL", "gloo": "Gloo", "mpi": "MPI", "ucc": "UCC", "xccl": "XCCL"}
_CALL = re.compile(r"^(?:torch\.ops\.(?P<namespace>\w+)|extern_kernels|aten)\.(?P<name>\w+)")
_SMALLEST_MKL_BATCH = 400  # aten/src/ATen/native/LinearAlgebra.cpp, bmm_out_or_baddbmm_: below, a loop of its own


@dataclass(frozen=True)
class Platform:
    """The device that is compiled for, as far as it decides between libraries."""

    amd: bool = False

    @staticmethod
    def of(simulated: Device | None) -> Platform:
        """The platform of the simulated card, else of torch's build."""
        return Platform(simulated.is_amd if simulated is not None else torch.version.hip is not None)


def who_computes(call: Call, node: torch.fx.Node | None, platform: Platform) -> str | None:
    """The library behind a call or the maker of its template, None for a kernel that is generated as a whole.

    `node` is the operator that a library call stands for.
    """
    if not call.extern:
        kinds = (compat.template_kind(leaf) for leaf in call.nodes)
        return next((_TEMPLATES.get(kind, "template") for kind in kinds if kind is not None), None)
    if node is not None and (written := inductor.hand_written(node)) is not None:
        return f"hand-written Triton ({written.name})"
    namespace, name = _operator(call, node)
    device = call.nodes[0].get_device()
    if namespace in _NAMESPACES:
        return _NAMESPACES[namespace]
    if namespace in ("_c10d_functional", "c10d"):
        backend = compat.collective_backend(node) if node is not None else None
        return _COLLECTIVES.get(backend or "")
    if namespace not in ("aten", "prims", "inductor"):
        return namespace or None
    if device is not None and device.type == "cuda":
        library = _on_gpu(name, node)
        return _ON_AMD.get(library, library) if platform.amd else library
    return _on_cpu(name, node) if device is not None and device.type == "cpu" else ATEN


def _operator(call: Call, node: torch.fx.Node | None) -> tuple[str, str]:
    """Namespace and name of what is called: by the call's own name, which may differ from the node's operator."""
    called = _CALL.match(call.name)
    operator = inductor.operator_of(node) if node is not None else None
    if called is not None and (called["namespace"] or operator is None or operator.namespace in ("aten", "prims")):
        return called["namespace"] or "aten", called["name"]
    return (operator.namespace, operator.name) if operator is not None else ("", call.name)


def _on_gpu(name: str, node: torch.fx.Node | None) -> str:
    if name in _PRODUCTS or name in ("bias_addmm", "_int_mm", "_mm_plus_mm"):
        return "cuBLAS"  # aten/src/ATen/cuda/CUDABlas.cpp; cuBLASLt is a part of it
    if name.startswith("convolution"):
        return _CONVOLUTIONS.get((compat.convolution_backend(node) if node is not None else None) or "", ATEN)
    if "flash_attention" in name:
        return "FlashAttention"  # aten/src/ATen/native/transformers/cuda/attention.cu
    if "efficient_attention" in name:
        return "memory-efficient attention (CUTLASS)"
    if "cudnn" in name:
        return "cuDNN"
    if name.startswith("_fft_"):
        return "cuFFT"  # aten/src/ATen/native/cuda/SpectralOps.cpp
    if name in _TRIANGULAR:
        return "cuBLAS or MAGMA"
    if _FACTORISATIONS.match(name):
        return "cuSOLVER or MAGMA"
    if name.startswith("_cslt_"):
        return "cuSPARSELt"
    if name.startswith("_sparse_semi_structured"):
        return "CUTLASS"  # aten/src/ATen/native/sparse/cuda/SparseSemiStructuredOps.cu
    if name == "_scaled_mm" and node is not None and _one_scale(node):
        return "cuBLASLt"  # aten/src/ATen/native/cuda/ScaledBlas.cpp; row-wise scales may go to CUTLASS
    return "cuRAND (Philox)" if _RANDOM.match(name) else ATEN


def _one_scale(node: torch.fx.Node) -> bool:
    """Whether each matrix of a scaled product has one scale for all of it."""
    scales = [source.meta.get("val") for source in node.args[2:4] if isinstance(source, torch.fx.Node)]
    sizes = [scale.numel() for scale in scales if isinstance(scale, torch.Tensor)]
    return len(sizes) == 2 and all(isinstance(size, int) and size == 1 for size in sizes)


def _on_cpu(name: str, node: torch.fx.Node | None) -> str:
    if name in _PRODUCTS or name == "bias_addmm":
        return _product_on_cpu(name, node)
    if name.startswith("convolution"):
        return _CONVOLUTIONS.get((compat.convolution_backend(node) if node is not None else None) or "", ATEN)
    if "flash_attention" in name:
        return "ATen (FlashAttention for the CPU)"  # aten/src/ATen/native/cpu/FlashAttentionKernel.cpp
    if name.startswith("_fft_"):
        return "MKL" if torch.backends.mkl.is_available() else "pocketfft"  # aten/src/ATen/native/mkl/SpectralOps.cpp
    if _FACTORISATIONS.match(name):
        return "MKL (LAPACK)" if torch.backends.mkl.is_available() else "LAPACK"
    return "oneDNN" if name == "mkldnn_rnn_layer" else ATEN


def _product_on_cpu(name: str, node: torch.fx.Node | None) -> str:
    """MKL where the build has it, for numbers that no other library takes over (`LinearAlgebra.cpp`).

    16-bit numbers, and float32 with a lower precision asked for, may go to oneDNN, as may OpenBLAS builds on ARM.
    """
    tensors = compat.tensors_of(node) if node is not None else []
    exact = {torch.float64, torch.complex64, torch.complex128}
    if torch.get_float32_matmul_precision() == "highest":
        exact.add(torch.float32)
    if not tensors or not torch.backends.mkl.is_available() or any(tensor.dtype not in exact for tensor in tensors):
        return ATEN
    if name in ("bmm", "baddbmm"):
        one, other = compat.value_of(node, -2), compat.value_of(node, -1)
        if one is None or other is None:
            return ATEN
        work = [*one.shape[1:], other.shape[-1]]
        if not all(isinstance(size, int) for size in work) or math.prod(work) < _SMALLEST_MKL_BATCH:
            return ATEN
    return "MKL"
