"""What Inductor's output depends on, as texts: values in a graph, tensors, symbolic sizes, settings, global state.

Two things with equal texts are the same to the compiler; what no text can be given is an `UncertainError`, never a
guess.  Private parts of torch, checked by running on 2.11 to 2.15:
- attributes that Dynamo puts on tensors (`_dynamo_static_input_type`, `_dynamo_dynamic_indices`, ...);
- `ShapeEnv` (`guards`, `var_to_range`, `replacements`, `deferred_runtime_asserts`, ...);
- the tables of lowerings and decompositions, to which programs can add functions of their own;
- `AOT_COUNTER` (`torch._functorch.aot_autograd`): the number in the first line of each wrapper.
This module knows nothing of stores or reports.
"""

from __future__ import annotations

import builtins
import enum
import hashlib
import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from inductoscope.compiler.compat.inductor import functorch_config, inductor_config

_NAMESPACES = frozenset(
    {"aten", "prims", "prim", "inductor", "mkldnn", "onednn", "quantized", "quantized_decomposed", "_c10d_functional"}
)
"""Operators whose code comes with torch; that of others is the program's, and may change without their name."""

_STEADY_MODULES = frozenset({"torch", "sympy", "_operator", "operator", "builtins", "math", "_functools", "functools"})
_MOST_BYTES = 1 << 16
"""Constants of a graph up to this size are compared by value; larger ones make it uncertain."""

_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, FakeTensor)
_COUNT = re.compile(r"count\((\d+)")
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


class UncertainError(Exception):
    """What something is cannot be told by a text; the message is a phrase that names it."""


def value_text(value: Any, node_text: Callable[[fx.Node], str]) -> str:
    """A value as it may stand among the arguments of a node.  Raises `UncertainError`."""

    def told(one: Any) -> str:
        return value_text(one, node_text)

    if isinstance(value, fx.Node):
        return node_text(value)
    if isinstance(value, bool | int | str | bytes | None) or value is Ellipsis:
        return f"{type(value).__name__}:{value!r}" if isinstance(value, enum.Enum) else repr(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return f"{type(value).__name__}({value.node.expr})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(told, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{told(key)}: {told(item)}" for key, item in value.items())
        return f"{type(value).__name__}{{{', '.join(pairs)}}}"
    if isinstance(value, set | frozenset):
        return f"set{{{', '.join(sorted(map(told, value)))}}}"
    if isinstance(value, slice):
        return f"slice({told(value.start)}, {told(value.stop)}, {told(value.step)})"
    return _object_text(value)


def _object_text(value: Any) -> str:
    if isinstance(value, complex | range | torch.dtype | torch.device | torch.layout | torch.memory_format):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return _operator_text(str(value))
    if isinstance(value, torch._ops.HigherOrderOperator):
        return f"higher-order {value.name()}"
    if isinstance(value, type) or callable(value):
        return _function_text(value)
    raise UncertainError(f"a {type(value).__name__}")


def _operator_text(name: str) -> str:
    if name.partition(".")[0] not in _NAMESPACES:
        raise UncertainError(f"the custom operator {name}")
    return f"operator {name}"


def _function_text(function: Any) -> str:
    """A function or class by its name, if it is one of torch's or Python's own and is what stands under that name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if isinstance(function, torch.nn.Module) or name is None:
        raise UncertainError(f"a {type(function).__name__}")
    if module is None:  # functions that are written in C: methods, and those of torch._C
        owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
        if getattr(builtins, name, None) is function or getattr(torch, name, None) is function:
            return f"function {name}"
        module = getattr(owner, "__module__", None) or getattr(owner, "__name__", None)
    if str(module).partition(".")[0] not in _STEADY_MODULES or "<locals>" in name:
        raise UncertainError(f"the function {name}")
    return f"function {module}.{name}"


def tensor_text(tensor: torch.Tensor, storage: Callable[[Any], int]) -> str:
    """All that the compiler looks at of a tensor, but not its values; `storage` numbers those that tensors may share.

    Raises `UncertainError` for a subclass.
    """
    if type(tensor) not in _TENSORS or tensor.layout is not torch.strided:
        raise UncertainError(f"an input of the type {type(tensor).__name__}")
    whole = tensor.untyped_storage()
    marks = {name: value for name, value in vars(tensor).items() if name.startswith("_dynamo")}
    marks.pop("_dynamo_weak_dynamic_indices_range", None)
    return " ".join(
        (
            type(getattr(tensor, "_base", None)).__name__,
            f"{isinstance(tensor, torch.nn.Parameter)} {getattr(tensor, '_is_buffer', False)}",
            f"{tensor.dtype} {tensor.device} {_sizes(tensor.shape)} {_sizes(tensor.stride())}",
            f"+{_size(tensor.storage_offset())} in {storage(whole)} of {_size(whole.nbytes())}",
            f"grad {tensor.requires_grad} {tensor.is_leaf} {_grad_dtype(tensor)}",
            f"{tensor.is_inference()} {tensor.is_conj()} {tensor.is_neg()}",
            f"hooks {bool(tensor._backward_hooks)} {bool(getattr(tensor, '_post_accumulate_grad_hooks', None))}",
            value_text(dict(sorted(marks.items())), _no_node),
        )
    )


def _grad_dtype(tensor: torch.Tensor) -> Any:
    """The type that a gradient is kept in (2.10 and later); only a leaf that requires one has it."""
    return getattr(tensor, "grad_dtype", None) if tensor.is_leaf and tensor.requires_grad else None


def constant_text(tensor: torch.Tensor) -> str:
    """A tensor that a graph holds itself, by value.  Raises `UncertainError` where its values cannot be looked at."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and tensor.device.type == "cpu"
    if not plain or tensor.layout is not torch.strided or tensor.numel() * tensor.element_size() > _MOST_BYTES:
        raise UncertainError("a large constant in the graph")
    values = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    digest = hashlib.sha256(bytes(values.tolist())).hexdigest()
    return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.requires_grad} {digest}"


def _sizes(sizes: Iterable[Any]) -> str:
    return f"[{', '.join(map(_size, sizes))}]"


def _size(size: Any) -> str:
    return str(size.node.expr) if isinstance(size, torch.SymInt) else str(size)


def _no_node(node: fx.Node) -> str:
    raise UncertainError(f"the node {node.name} outside of a graph")


def shape_env() -> Any:
    """The symbolic sizes of the compilation under way; None outside of one."""
    context = torch._guards.TracingContext.try_get()
    return context.fake_mode.shape_env if context is not None and context.fake_mode is not None else None


def sizes_text(env: Any) -> str:
    """What is known of symbolic sizes, with the values that they have in this run.

    Raises `UncertainError` where there are sizes without one: they are numbered through a whole compilation.
    """
    if env is None:
        return "none"
    if any(getattr(env, name, 0) for name in ("unbacked_symint_counter", "unbacked_symfloat_counter")):
        raise UncertainError("a size that depends on data")
    values = getattr(env, "backed_var_to_val", None)
    values = env.var_to_val if values is None else values  # its name until 2.9
    sources = ((symbol, [_source(one) for one in found]) for symbol, found in env.var_to_sources.items())
    return repr(
        (
            _sorted(values.items()),
            _sorted(env.var_to_range.items()),
            _sorted(sources),
            _sorted(env.replacements.items()),
            sorted(map(str, env.divisible)),
            [str(guard.expr) for guard in env.guards],
            _sorted(env.deferred_runtime_asserts.items()),
            sorted(map(str, getattr(env, "size_like", ()))),
            str(env.settings),
        )
    )


def _source(source: Any) -> str:
    name = source.name
    return str(name() if callable(name) else name)


def _sorted(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[str, str]]:
    return sorted((str(one), str(other)) for one, other in pairs)


def traces() -> tuple[str, ...]:
    """What lowering a graph may leave behind besides its code and guards on sizes: guards of AOTAutograd's own, and the
    numbers that later graphs are named by.

    Where two of these differ, the lowering between them was more than a function of its graph.
    """
    context = torch._guards.TracingContext.try_get()
    own = str(len(context.guards_context.aotautograd_guards)) if context is not None else ""
    return own, *_template_counts()


_TEMPLATES = (
    ("torch._inductor.select_algorithm", "TritonTemplate"),
    ("torch._inductor.codegen.subgraph", "SubgraphTemplate"),
    ("torch._inductor.codegen.cpp_template", "CppTemplate"),
    ("torch._inductor.codegen.cutlass.template", "CUTLASSTemplate"),
    ("torch._inductor.codegen.cuda.cuda_template", "CUDATemplate"),
    ("torch._inductor.codegen.rocm.rocm_template", "ROCmTemplate"),
    ("torch._inductor.codegen.cutedsl.cutedsl_template", "CuteDSLTemplate"),
    ("torch._inductor.codegen.nv_universal_gemm.nv_universal_gemm", "NVUniversalGemmTemplate"),
)
"""Classes of Inductor's that number what they make through the whole process (`index_counter`)."""


def _template_counts() -> Iterator[str]:
    for module, name in _TEMPLATES:  # one that nobody has imported has made nothing
        counter = getattr(getattr(sys.modules.get(module), name, None), "index_counter", None)
        yield "count(0)" if counter is None else repr(counter)


def aot_number() -> int | None:
    """The number that AOTAutograd gives its next graph; None where this torch does not tell."""
    counter = getattr(importlib.import_module("torch._functorch.aot_autograd"), "AOT_COUNTER", None)
    found = _COUNT.match(repr(counter))
    return int(found[1]) if found else None


def take_aot_number() -> int:
    """Take that number for a graph of ours."""
    return int(next(importlib.import_module("torch._functorch.aot_autograd").AOT_COUNTER))


def settings_text(options: Mapping[str, Any]) -> str:
    """All settings of Dynamo, AOTAutograd and Inductor, with the `options` of the call over the latter's.

    Raises `UncertainError` for one that is an object: a pass of the program's, a backend.
    """
    inductor = {**inductor_config().get_config_copy(), **options}
    if inductor.get("freezing"):
        raise UncertainError("freezing, which writes the weights into the code")
    dynamo = importlib.import_module("torch._dynamo.config").get_config_copy()
    told = []
    for config in (inductor, functorch_config().get_config_copy(), dynamo):
        for name, value in sorted(config.items()):
            try:
                told.append(f"{name}={value_text(value, _no_node)}")
            except UncertainError as uncertain:
                raise UncertainError(f"the setting {name}, {uncertain}") from None
    return "\n".join(told)


def foreign_lowering() -> str | None:
    """An operator for which the program has put code of its own into the compiler; None where there is none."""
    lowerings = importlib.import_module("torch._inductor.lowering").lowerings
    decompositions = importlib.import_module("torch._inductor.decomposition").decompositions
    for table in (lowerings, decompositions):
        for called, function in table.items():
            module = str(getattr(function, "__module__", None) or "torch")
            if module.partition(".")[0] not in _STEADY_MODULES:
                return str(called)
    return None


def state_text() -> str:
    """The global state of torch that a graph is compiled under.

    Raises `UncertainError` inside of hooks and modes of the program's own.
    """
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        raise UncertainError("hooks on saved tensors")
    compiled_autograd = importlib.import_module("torch._dynamo.compiled_autograd")
    if compiled_autograd.compiled_autograd_enabled or compiled_autograd.in_compiled_autograd_region:
        raise UncertainError("compiled autograd")
    context = torch._guards.TracingContext.try_get()
    if context is not None and context.output_strides is not None:
        raise UncertainError("strides of outputs that somebody asks for")
    return repr(
        (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            [_autocast(device) for device in ("cpu", "cuda", "xpu", "mps")],
            torch.is_autocast_cache_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
            torch.get_default_dtype(),
            str(torch.get_default_device()),
            torch.is_anomaly_enabled(),
            torch.get_num_threads(),
            getattr(context, "fakify_first_call", None),
            getattr(context, "force_unspec_int_unbacked_size_like", None),
            getattr(context, "cudagraph_annotation", None),
            *_backends(),
        )
    )


def _autocast(device: str) -> tuple[bool, str]:
    return torch.is_autocast_enabled(device), str(torch.get_autocast_dtype(device))


def _backends() -> Iterator[Any]:
    backends = torch.backends
    yield backends.cpu.get_cpu_capability()
    yield backends.mkldnn.enabled, backends.mkldnn.is_available(), backends.mkl.is_available()
    yield backends.cudnn.enabled, backends.cudnn.benchmark, backends.cudnn.deterministic
    yield torch.get_float32_matmul_precision(), backends.opt_einsum.enabled
    matmul = backends.cuda.matmul
    yield tuple(
        str(getattr(matmul, name, None))
        for name in (
            "allow_fp16_reduced_precision_reduction",
            "allow_bf16_reduced_precision_reduction",
            "allow_fp16_accumulation",
        )
    )
    cuda = backends.cuda
    yield cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled(), cuda.cudnn_sdp_enabled()
    yield tuple(str(getattr(owner, "fp32_precision", None)) for owner in (matmul, backends.cudnn, backends.mkldnn))


def has_address(text: str) -> bool:
    """Whether a text names the address of an object, which another process has elsewhere."""
    return _ADDRESS.search(text) is not None
