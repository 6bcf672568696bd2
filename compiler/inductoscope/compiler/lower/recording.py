"""What Inductor does while it compiles one graph, noted as it happens.

The hooks here only take down objects (scheduler nodes, names, texts); `build` makes report types of them before
Inductor lets go of the scheduler.  Nothing here judges.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat import kernel_calls
from inductoscope.compiler.lower.provenance import Provenance
from inductoscope.compiler.lower.record_mode import RecordedKernel


@dataclass(frozen=True)
class KernelText:
    """A kernel's text as its code generator wrote it, with graph nodes by 0-based line."""

    text: str
    nodes: dict[int, torch.fx.Node]


@dataclass(frozen=True)
class Call:
    """One kernel call in the wrapper and the scheduler nodes behind it.

    Two calls may share a kernel whose text came out the same for different lines of the model: `text` is this call's.
    `graph` is the GraphLowering that the nodes belong to: the body of a branch or a loop has one of its own.
    """

    name: str
    nodes: tuple[Any, ...]
    extern: bool
    text: KernelText | None = None
    graph: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Passed:
    """An input of the graph that a generated kernel gets a pointer to, and what it takes the elements there for."""

    kernel: str
    input: str
    declared: kernel_calls.Declared


@dataclass(frozen=True)
class Rejection:
    """The scheduler's reason for keeping two sets of operations (their names) apart."""

    first: frozenset[str]
    second: frozenset[str]
    reason: str


@dataclass(frozen=True)
class Partition:
    """A piece of the graph as cut for CUDA graphs, and why pieces that cannot be recorded cannot."""

    recordable: bool
    reason: str | None = None
    node: torch.fx.Node | None = None


@dataclass
class Compilation:
    """Everything noted about one graph: forward, backward or inference."""

    graph: Any
    calls: list[Call] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    creators: dict[str, torch.fx.Node] = field(default_factory=dict)
    fragments: list[tuple[str, dict[int, torch.fx.Node]]] = field(default_factory=list)
    loaded: dict[str, str] = field(default_factory=dict)
    wrapper: str = ""
    allocated: int = 0
    reused: int = 0
    inplace: int = 0
    reasons: dict[int, str] = field(default_factory=dict)
    partitions: list[Partition] = field(default_factory=list)


class Recording:
    """Notes every compilation while `watching`; each finished one goes to `on_compiled` with its graph still alive."""

    def __init__(self, on_compiled: Callable[[Compilation], None]) -> None:
        self._on_compiled = on_compiled
        self._provenance = Provenance()
        self._compilations: dict[int, Compilation] = {}
        self._extern_names: dict[int, str] = {}
        self._defined: tuple[str, KernelText] | None = None
        self._leaves: dict[str, frozenset[str]] = {}
        self._combos: dict[str, list[Any]] = {}
        self.failed_node: torch.fx.Node | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take notes for the duration of the block."""
        points: list[tuple[compat.Point, compat.Make]] = [
            (compat.GRAPH_RUN_NODE, self._run_node),
            (compat.GRAPH_REGISTER, self._register_operation),
            (compat.GRAPH_CODEGEN, self._codegen),
            (compat.GRAPH_MODULE, self._compile_to_module),
            (compat.EXTERN_CALL, self._extern_call),
            (compat.EXTERN_NAME, self._extern_name),
            (compat.WHY_NOT_INIT, self._why_not_init),
            (compat.WHY_NOT, self._why_not),
            (kernel_calls.KERNEL_CALL, self._kernel_call),
            (compat.COMBO_KERNELS, self._combo_kernels),
            (compat.PARTITION_REASON, self._partition_reason),
            (compat.PARTITIONS, self._partitions),
            (compat.BUFFER_ALLOCATED, self._counting("allocated")),
            (compat.BUFFER_REUSED, self._counting("reused")),
            (compat.BUFFER_INPLACE, self._counting("inplace")),
            *((point, self._generated_call) for point in compat.GENERATED_CALL),
            *((point, self._define_kernel) for point in compat.DEFINE_KERNEL),
        ]
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._provenance.watching())
            for point, make in points:
                stack.enter_context(compat.replaced(point, make))
            yield

    def _of(self, graph: Any) -> Compilation:
        root = compat.root_graph(graph)
        return self._compilations.setdefault(id(root), Compilation(root))

    def _now(self) -> Compilation:
        return self._of(compat.current_graph())

    def _run_node(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_node(graph: Any, node: torch.fx.Node) -> Any:
            try:
                return original(graph, node)
            except Exception:
                self.failed_node = self.failed_node or node  # the innermost: bodies of subgraphs fail first
                raise

        return run_node

    def _register_operation(self, original: Callable[..., str]) -> Callable[..., str]:
        def register_operation(graph: Any, operation: Any) -> str:
            name = original(graph, operation)
            node = compat.current_node()
            if node is not None:
                self._of(graph).creators[name] = node
            return name

        return register_operation

    def _codegen(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen(graph: Any) -> Any:
            result = original(graph)
            wrapper = result[0] if isinstance(result, tuple) else result
            self._of(graph).wrapper = str(getattr(wrapper, "value", wrapper))
            return result

        return codegen

    def _compile_to_module(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(graph: Any) -> Any:
            module = original(graph)
            noted = self._compilations.pop(id(graph), None)
            if noted is not None:
                noted.loaded = {n: v.source for n, v in vars(module).items() if isinstance(v, RecordedKernel)}
                noted.fragments = self._provenance.fragments()
                self._on_compiled(noted)
            self._provenance.forget()
            self._extern_names.clear()
            self._leaves.clear()
            self._combos.clear()
            return module

        return compile_to_module

    def _extern_name(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_comment(kernel: Any, wrapper: Any, kernel_name: str | None = None) -> Any:
            if kernel_name:
                self._extern_names[id(kernel)] = kernel_name
            return original(kernel, wrapper, kernel_name) if kernel_name else original(kernel, wrapper)

        return codegen_comment

    def _extern_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_extern_call(scheduler: Any, node: Any) -> Any:
            result = original(scheduler, node)
            kernel = compat.leaves(node)[0].node
            name = self._extern_names.get(id(kernel)) or getattr(kernel, "python_kernel_name", None)
            if name:  # the parts of a multiple output, scalars and assertions have none, and run nothing
                self._now().calls.append(Call(name, tuple(compat.leaves(node)), True, graph=compat.current_graph()))
            return result

        return codegen_extern_call

    def _generated_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_comment(backend: Any, nodes: Any, kernel_name: str | None = None) -> Any:
            defined, text = self._defined or (None, None)
            name = kernel_name or defined  # some kernels are announced without their name, right after defining
            if name is not None:
                written = text if name == defined else None
                inside = self._combos.get(written.text, nodes) if written is not None else nodes
                single = [leaf for node in inside if hasattr(node, "get_nodes") for leaf in compat.leaves(node)]
                call = Call(name, tuple(dict.fromkeys(single)), False, written, compat.current_graph())
                calls = self._now().calls
                if not calls or calls[-1] != call:  # a subclass may pass the call on to its base
                    calls.append(call)
            return original(backend, nodes, kernel_name)

        return codegen_comment

    def _combo_kernels(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Operations that share a launch are announced with every kernel; only here they are told apart."""

        def generate_combo_kernel_code(*args: Any, **kwargs: Any) -> Any:
            written = original(*args, **kwargs)
            self._combos.update({text: nodes for text, _, nodes in written if text})
            return written

        return generate_combo_kernel_code

    def _kernel_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def generate_kernel_call(wrapper: Any, name: str, call_args: Any, *args: Any, **options: Any) -> Any:
            inputs = kernel_calls.inputs_by_pointer(call_args, options)
            self._now().passed += [Passed(name, given, declared) for given, declared in inputs]
            return original(wrapper, name, call_args, *args, **options)

        return generate_kernel_call

    def _define_kernel(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def define_kernel(backend: Any, text: str, *args: Any, **kwargs: Any) -> Any:
            name = original(backend, text, *args, **kwargs)
            self._defined = name, KernelText(text, self._provenance.lines(text))
            return name

        return define_kernel

    def _why_not_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(why: Any, first: Any, second: Any) -> None:
            original(why, first, second)
            for node in (first, second):
                self._leaves[node.get_name()] = frozenset(leaf.get_name() for leaf in compat.leaves(node))

        return init

    def _why_not(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def why_not(why: Any, reason: str, *args: Any) -> Any:
            first, second = self._leaves[why.name1], self._leaves[why.name2]
            with contextlib.suppress(TypeError, ValueError):  # a reason whose arguments do not fit its text
                self._now().rejections.append(Rejection(first, second, reason % args if args else reason))
            return original(why, reason, *args)

        return why_not

    def _partition_reason(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def should_partition(scheduler: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
            reason = original(scheduler, node, *args, **kwargs)
            if reason:
                self._now().reasons[id(node)] = str(reason)
            return reason

        return should_partition

    def _partitions(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def graph_partition(scheduler: Any) -> Any:
            partitions, signatures = original(scheduler)
            noted = self._now()
            noted.partitions = [
                _partition(noted, nodes, signature.skip_cudagraph)
                for nodes, signature in zip(partitions, signatures, strict=True)
            ]
            return partitions, signatures

        return graph_partition

    def _counting(self, attribute: str) -> compat.Make:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **kwargs: Any) -> Any:
                noted = self._now()
                setattr(noted, attribute, getattr(noted, attribute) + 1)
                return original(*args, **kwargs)

            return counted

        return make


def _partition(noted: Compilation, nodes: list[Any], skipped: bool) -> Partition:
    if not skipped:
        return Partition(recordable=True)
    for node in nodes:
        if id(node) in noted.reasons:
            made_by = [noted.creators.get(leaf.get_name()) for leaf in compat.leaves(node)]
            return Partition(False, noted.reasons[id(node)], next((m for m in made_by if m is not None), None))
    return Partition(recordable=False, reason="it is too small to be worth recording")
