"""Inductor's private parts that lowering reads or wraps, and nothing else.

Each `Point` names one attribute of torch, why it is needed, and what happens where a version of torch lacks it.
Checked by running on torch 2.11 to 2.15.  `replaced` is the only way in which torch is patched, and it undoes itself.
This module knows nothing of reports.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

import torch

from inductoscope.compiler.compat import troubles
from inductoscope.protocol.report import Place

logger = logging.getLogger(__name__)

_MISSING: Any = object()


@dataclass(frozen=True)
class Point:
    """An attribute of torch, `module:dotted.path`, and the reason for using it.

    A point that is not `required` is one that some supported version lacks; without it less is known.  `parameters` are
    names of a function's parameters that are read; without one of them the point is of no use.
    """

    module: str
    path: str
    reason: str
    required: bool = True
    parameters: tuple[str, ...] = ()

    def owner(self) -> Any:
        """The object that holds the attribute, or None where this torch has no such module or class."""
        try:
            found: Any = importlib.import_module(self.module)
        except ImportError:
            return None
        for part in self.path.split(".")[:-1]:
            found = getattr(found, part, None)
        return found

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit(".", maxsplit=1)[-1]

    def exists(self) -> bool:
        """Whether this torch has the attribute, with all the parameters that are read."""
        return self.lacks(getattr(self.owner(), self.name, _MISSING)) is None

    def lacks(self, found: Any) -> str | None:
        """What is missing of the point, by name, when `found` is there in its place; None when it can be used."""
        if found is _MISSING:
            return f"{self.module}.{self.path}"
        known = inspect.signature(found).parameters if self.parameters else {}
        absent = next((name for name in self.parameters if name not in known), None)
        return absent and f"parameter {absent} of {self.module}.{self.path}"


_I = "torch._inductor."
ENTRY = Point(
    "torch", "_TorchCompileInductorWrapper.__call__", "every torch.compile with the default backend ends here"
)
GRAPH_RUN_NODE = Point(_I + "graph", "GraphLowering.run_node", "which graph node was being lowered when it failed")
GRAPH_REGISTER = Point(_I + "graph", "GraphLowering.register_operation", "which graph node made which kernel operation")
GRAPH_CODEGEN = Point(_I + "graph", "GraphLowering.codegen", "the wrapper's text")
GRAPH_MODULE = Point(_I + "graph", "GraphLowering.compile_to_module", "code is complete, its scheduler still alive")
EXTERN_CALL = Point(_I + "scheduler", "Scheduler.codegen_extern_call", "library calls in call order")
EXTERN_NAME = Point(
    _I + "ir", "ExternKernel.codegen_comment", "the name under which the wrapper calls a library kernel"
)
WHY_NOT_INIT = Point(_I + "scheduler", "WhyNoFuse.__init__", "the two scheduler nodes as objects; it keeps only names")
WHY_NOT = Point(_I + "scheduler", "WhyNoFuse.__call__", "the reason why two nodes stay apart")
GENERATED_CALL = (
    Point(_I + "codegen.triton", "TritonScheduling.codegen_comment", "generated kernels in call order"),
    Point(_I + "codegen.cpp", "CppScheduling.codegen_comment", "generated kernels in call order", required=False),
    Point(_I + "scheduler", "BaseScheduling.codegen_comment", "the same for other code generators", required=False),
)
DEFINE_KERNEL = (
    Point(_I + "codegen.triton", "TritonScheduling.define_kernel", "a kernel's text as written, with its name"),
    Point(_I + "codegen.cpp", "CppScheduling.define_kernel", "a kernel's text as written, with its name"),
)
COMBO_KERNELS = Point(
    _I + "codegen.simd",
    "SIMDScheduling.generate_combo_kernel_code",
    "which of the operations that share a launch went into which kernel",
    required=False,
)
COMPILE_BACKWARD = Point(
    _I + "compile_fx", "compile_fx_backward", "a backward pass may be too large to lower before anybody asks for it"
)

LOOPS_INIT = Point(_I + "ir", "Loops.__post_init__", "a loop nest is born while its graph node is being lowered")
STORE_FUNCTION = Point(_I + "ir", "ComputedBuffer.get_store_function", "reductions and stores emit outside inner_fn")
TRACE_PROXY = Point(_I + "loop_body", "LightTracer.create_proxy", "remember the graph node of each traced operation")
SHIM_NODE = Point(_I + "loop_body", "InterpreterShim.run_node", "which traced operation is being written out")
BUFFER_WRITE = Point(_I + "utils", "IndentedBuffer.writeline", "mark each line of code with its graph node")
BUFFER_VALUE = Point(_I + "utils", "IndentedBuffer.getvaluewithlinemap", "lines become text: note where the marks land")
DEFERRED_PREFIX = Point(_I + "utils", "DeferredLineBase.with_prefix", "copies of a marked line stay marked")
DEFERRED_SLICE = Point(_I + "utils", "DeferredLineBase.__getitem__", "copies of a marked line stay marked")

ASYNC_COMPILE = _I + "async_compile"
LOAD_CPP_WRAPPER = Point(_I + "codecache", "CppPythonBindingsCodeCache.load_pybinding", "cpp_wrapper starts g++ here")
VECTOR_PROBE = Point(_I + "cpu_vec_isa", "VecISA.check_build", "builds small libraries to try the C++ compiler")
COMPILER_SEARCH = Point(_I + "cpp_builder", "get_cpp_compiler", "runs candidates to see which compiler is there")
SELECT_ALGORITHM = Point(_I + "select_algorithm", "AlgorithmSelectorCache.__call__", "times candidates on the device")
CUDAGRAPHIFY = Point(_I + "compile_fx", "cudagraphify", "would load the CUDA graph runtime")
CUDAGRAPH_BACKWARD = Point(_I + "output_code", "maybe_handle_backward_generation", "asks the CUDA graph runtime")
CUDAGRAPH_SKIP = (
    Point(_I + "cudagraph_utils", "log_cudagraph_skip_and_bump_counter", "why CUDA graphs are not used"),
    Point(_I + "output_code", "log_cudagraph_skip_and_bump_counter", "why CUDA graphs are not used"),
)
MUTATION_TRACE = Point(
    _I + "cudagraph_utils", "get_mutation_stack_trace", "the sentence Inductor has for a written input"
)
PARTITIONS = Point(_I + "scheduler", "Scheduler.graph_partition", "the pieces cut for CUDA graphs", required=False)
PARTITION_REASON = Point(_I + "scheduler", "Scheduler.should_partition", "why a piece is cut", required=False)
BUFFER_ALLOCATED = Point(_I + "codegen.wrapper", "PythonWrapperCodegen.make_buffer_allocation", "buffers allocated")
BUFFER_REUSED = Point(_I + "codegen.wrapper", "PythonWrapperCodegen.make_buffer_reuse", "buffers that take over memory")
BUFFER_INPLACE = Point(_I + "codegen.common", "KernelArgs.make_inplace", "outputs written over an input")

ALL_POINTS: tuple[Point, ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Point)),
    *GENERATED_CALL,
    *DEFINE_KERNEL,
    *CUDAGRAPH_SKIP,
)

Make = Callable[[Callable[..., Any]], Callable[..., Any]]


@contextlib.contextmanager
def replaced(point: Point, make: Make) -> Iterator[None]:
    """Put `make(original)` in the place of `point` for the duration of the block.

    Where this torch lacks the point, nothing is replaced, and the report says so if the point is required; likewise
    where torch's function takes more arguments than the replacement, which would fail in torch's own code.  What was
    inherited is inherited again afterwards.
    """
    owner = point.owner()
    original = getattr(owner, point.name, _MISSING)
    absent = point.lacks(original)
    if absent is not None:
        if point.required:
            troubles.missing(logger, absent, point.reason)
        yield
        return
    replacement = make(original)
    if not _fits(replacement, original):
        troubles.changed(logger, f"{point.module}.{point.path}", point.reason)
        yield
        return
    own = vars(owner).get(point.name, _MISSING)
    setattr(owner, point.name, replacement)
    try:
        yield
    finally:
        if own is _MISSING:
            delattr(owner, point.name)
        else:
            setattr(owner, point.name, own)


def _fits(replacement: Any, original: Any) -> bool:
    """Whether the replacement takes as many arguments as the original, as far as Python can tell."""
    given, taken = _room(original), _room(replacement)
    return given is None or taken is None or taken >= given


def _room(function: Any) -> int | None:
    """How many arguments a function takes; None where any number, or for what is no Python function."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    return int(code.co_argcount + code.co_kwonlyargcount)


@contextlib.contextmanager
def async_compile_replaced(make: Callable[[str], Callable[..., Any]]) -> Iterator[None]:
    """Replace each method of AsyncCompile that starts a compiler by `make(method name)`.

    The methods differ between versions (`cutlass`, `cutedsl`, `pallas` are newer), so they are found by their shape:
    public instance methods, except `wait`, which only collects what the others made.
    """
    owner = importlib.import_module(ASYNC_COMPILE).AsyncCompile
    starters = {n: f for n, f in vars(owner).items() if callable(f) and not n.startswith("_") and n != "wait"}
    for name in starters:
        setattr(owner, name, make(name))
    try:
        yield
    finally:
        for name, function in starters.items():
            setattr(owner, name, function)


def current_node() -> torch.fx.Node | None:
    """The graph node that Inductor is lowering now."""
    node = getattr(_virtualized().graph, "current_node", None)
    return node if isinstance(node, torch.fx.Node) and node.op != "output" else None


def current_graph() -> Any:
    """The GraphLowering at work, or the null handler outside of one."""
    return _virtualized().graph


@functools.cache
def _virtualized() -> Any:
    """`V`, Inductor's context.  The same object in 2.11 to 2.15."""
    return importlib.import_module("torch._inductor.virtualized").V


def within_graph(graph: Any) -> contextlib.AbstractContextManager[Any]:
    """Inside the block `graph` is the GraphLowering at work; buffers are found by name in that one."""
    manager: contextlib.AbstractContextManager[Any] = _virtualized().set_graph_handler(graph)
    return manager


def root_graph(graph: Any) -> Any:
    """The outermost graph: bodies of `torch.cond` and the like are graphs with a parent."""
    while getattr(graph, "parent", None) is not None:
        graph = graph.parent
    return graph


def compile_id() -> tuple[str, int]:
    """torch's id of the compilation under way (`0/0`) and the attempt, which counts restarts of Dynamo's analysis."""
    trace = torch._guards.CompileContext.current_trace_id()
    if trace is None:
        return "?", 0
    return str(trace.compile_id), int(getattr(trace, "attempt", 0))


def compiled_code() -> CodeType | None:
    """The code object that Dynamo is compiling, read off the Python stack.

    The backend is not told; `_compile` in convert_frame has it in its argument `code` (2.2 and later).
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_compile" and frame.f_globals.get("__name__") == "torch._dynamo.convert_frame":
            code = frame.f_locals.get("code")
            return code if isinstance(code, CodeType) else None
        frame = frame.f_back
    return None


def python_stack() -> Iterator[Place]:
    """The lines that Python is running now, innermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back


def compile_fx(model: torch.fx.GraphModule, inputs: list[Any], patches: Mapping[str, Any], region: str | None) -> Any:
    """Inductor itself, as `_TorchCompileInductorWrapper.__call__` calls it.

    `compile_region_name` came with 2.12 and is left out where it is unknown.
    """
    function = importlib.import_module("torch._inductor.compile_fx").compile_fx
    extra = {"compile_region_name": region} if region is not None else {}
    return function(model, inputs, config_patches=dict(patches), **extra)


def inductor_config() -> ModuleType:
    """`torch._inductor.config`."""
    return importlib.import_module("torch._inductor.config")


def functorch_config() -> ModuleType:
    """`torch._functorch.config`."""
    return importlib.import_module("torch._functorch.config")


def known_settings(config: ModuleType, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the wanted settings that this torch has."""
    known = set(config.get_config_copy())
    return {key: value for key, value in wanted.items() if key in known}


def leaves(scheduler_node: Any) -> list[Any]:
    """The single operations that a scheduler node was fused from."""
    return list(scheduler_node.get_nodes())


def cpp_compiler() -> str:
    """The C++ compiler that Inductor would use, by name; where none is installed, the one it would look for last.

    Inductor writes slightly different text for gcc and for others (`#pragma GCC ivdep`).
    """
    configured = inductor_config().cpp.cxx
    names = [configured] if isinstance(configured, str) else [name for name in configured if name]
    return next((name for name in names if shutil.which(name)), names[-1] if names else "g++")


@dataclass(frozen=True)
class Operator:
    """What an operator's schema tells: namespace, name without the overload, and whether it only makes views."""

    namespace: str
    name: str
    only_views: bool


def operator_of(node: torch.fx.Node) -> Operator | None:
    """The operator (`aten::add`) that a graph node calls; None for any other node."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return None
    returned = [result.alias_info for result in target._schema.returns]
    views = bool(returned) and all(alias is not None and not alias.is_write for alias in returned)
    return Operator(target.namespace, target._schema.name.split("::")[-1], views)


def qualified_name(target: Any) -> str | None:
    """An operator's name without its overload (`aten.add`); None for anything else."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    return target._schema.name.replace("::", ".")


def higher_order_name(node: torch.fx.Node) -> str | None:
    """The name of an operator that takes functions (`cond`, the launch of a hand-written kernel), else None."""
    return str(node.target.name()) if isinstance(node.target, torch._ops.HigherOrderOperator) else None


def buffer_lines(buffer: Any) -> list[Any]:
    """The lines that a buffer of Inductor's code holds: texts, deferred lines and position markers."""
    lines: list[Any] = buffer._lines
    return lines


def only_falls_back(op: Any) -> bool:
    """Whether Inductor has nothing but a library call for an operator, on any device.

    Such operators are registered by `make_fallback`, whose handler is a function inside `fallback_handler`.
    """
    lowering = importlib.import_module("torch._inductor.lowering").lowerings.get(op)
    return lowering is None or inspect.unwrap(lowering).__qualname__.startswith("fallback_handler.")


def without_guards(graph: Any) -> contextlib.AbstractContextManager[None]:
    """For what only reads facts: looking at a symbolic size would pin it, unless guards are suppressed."""
    return graph.sizevars.shape_env.suppress_guards()


def mutation_sentence(placeholders: Any, indices: list[int]) -> str:
    """Inductor's own sentence for inputs that the graph writes, with the stack of the writing line."""
    owner = MUTATION_TRACE.owner()
    if owner is None or not MUTATION_TRACE.exists():
        return f"mutated inputs ({len(indices)} instances)"
    return str(owner.get_mutation_stack_trace(placeholders, indices))


def dynamic_shape_limit() -> int | None:
    """Above how many recorded sizes torch warns; None when the user turned the warning off."""
    limit = inductor_config().triton.cudagraph_dynamic_shape_warn_limit
    return None if limit is None else int(limit)


@dataclass(frozen=True)
class HandWritten:
    """The text of a hand-written Triton kernel from its `def` on, and where that line stands."""

    text: str
    file: str
    line: int
    name: str


def hand_written(node: torch.fx.Node) -> HandWritten | None:
    """The Triton kernel that a graph node launches, in the user's own text; None for any other node.

    Dynamo keeps the kernels of a process in a table and puts an index into the graph; `@triton.autotune` and
    `@triton.heuristics` wrap the function in `fn`.
    """
    if "kernel_idx" not in node.kwargs:
        return None
    table = importlib.import_module("torch._higher_order_ops.triton_kernel_wrap").kernel_side_table
    kernel = table.get_kernel(node.kwargs["kernel_idx"])
    while hasattr(kernel, "fn") and not hasattr(kernel, "src"):
        kernel = kernel.fn
    try:
        code, text = kernel.fn.__code__, str(kernel.src)
        above = inspect.getsource(kernel.fn).split("def ", maxsplit=1)[0].count("\n")
    except (AttributeError, OSError, TypeError):
        return None
    return HandWritten(text, code.co_filename, code.co_firstlineno + above, code.co_name)


def hand_written_grid(node: torch.fx.Node) -> str | None:
    """The launch grid of a hand-written Triton kernel; several, one a configuration, only where all are equal."""
    grids = {tuple(map(str, grid)) for grid in node.kwargs.get("grid", ())}
    return f"({', '.join(grids.pop())})" if len(grids) == 1 else None


def module_forward(node: torch.fx.Node) -> Place | None:
    """The `forward` of the innermost module that a graph node comes from, or None outside of modules.

    Dynamo records the modules (`nn_module_stack`), which in a backward pass stand under `fwd_nn_module_stack`.  For
    modules of torch itself it records no lines of code.
    """
    return next(module_forwards(node), None)


def module_forwards(node: torch.fx.Node) -> Iterator[Place]:
    """The same for all modules around the node, innermost first."""
    modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    for _, cls in reversed(list(modules.values())):
        code = getattr(getattr(cls, "forward", None), "__code__", None)
        if isinstance(code, CodeType):
            yield Place(code.co_filename, code.co_firstlineno, f"{cls.__name__}.forward")
