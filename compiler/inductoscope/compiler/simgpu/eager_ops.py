"""The operators that a captured graph dispatches when it runs eagerly, forward and backward.

The graph is run once more on tensors of its own that have shapes and no data, so nothing of the program is touched: no
value is looked at, no random number drawn, no buffer written.  Knows nothing of kernels or of how long they take.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from inductoscope.compiler.float32 import may_use_tf32
from inductoscope.compiler.layouts import layouts_of, text_of
from inductoscope.compiler.predict.eager import HAND_WRITTEN, EagerOp, EagerRun, Launches

MOST_OPERATORS = 4000
"""Captured graphs with more operators are not run once more: that would take seconds."""

_ALLOCATES = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_LOOKS_LIKE = frozenset({"detach", "alias", "lift_fresh", "_reshape_alias", "_unsafe_view", "set_", "sym_size"})
_READS_ROWS = frozenset({"embedding", "index_select", "gather", "index", "take", "take_along_dim", "_unsafe_index"})
_ONLY_WRITES = frozenset({"fill_", "zero_", "copy_", "bernoulli_", "uniform_", "normal_", "random_", "exponential_"})
_BY_DATA = frozenset({"cond", "while_loop"})
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


@dataclass(frozen=True)
class Rerun:
    """How to run a captured graph once more: what runs it, and the mode in which tensors have no data."""

    graph: torch.fx.Graph
    runner: Callable[..., Any]
    shapes_only: FakeTensorMode

    def on(self, args: Sequence[Any]) -> EagerRun:
        """Run it on tensors like `args`, and backward where the results need gradients.  Never raises."""
        if self._branches():
            return EagerRun(None, missing="the graph branches or loops by its data", branches=True)
        refused = self._refused()
        if refused is not None:
            return EagerRun(None, missing=refused)
        forward = _Log()
        try:
            with self.shapes_only:
                given = [self._like(arg) for arg in args]
                with forward:
                    results = self.runner(*given)
        except Exception as error:  # operators without shapes, sizes that depend on data, code of the program's own
            return EagerRun(None, missing=_why(error))
        leaves = [leaf for leaf in given if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        roots = [leaf for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if not leaves or not roots:
            return EagerRun(forward.told())
        try:
            return EagerRun(forward.told(), self._backward(roots, leaves))
        except Exception as error:
            return EagerRun(forward.told(), missing=_why(error))

    def _branches(self) -> bool:
        """Whether an operator runs one of several bodies, or one as often as its data say."""
        owner = self.graph.owning_module
        nested = owner.modules() if owner is not None else ()
        graphs = [self.graph, *(one.graph for one in nested if isinstance(one, torch.fx.GraphModule))]
        targets = (node.target for graph in graphs for node in graph.nodes if node.op == "call_function")
        return any(isinstance(one, torch._ops.HigherOrderOperator) and one.name() in _BY_DATA for one in targets)

    def _refused(self) -> str | None:
        called = [node.target for node in self.graph.nodes if node.op.startswith("call_")]
        if len(called) > MOST_OPERATORS:
            return f"the graph has more than {MOST_OPERATORS} operators"
        if any(getattr(target, "__name__", None) in _RECURRENT for target in called):
            return "cuDNN's recurrent layers have no model"
        return None

    def _like(self, arg: Any) -> Any:
        """A tensor of the same layout without data; anything else is itself."""
        if not isinstance(arg, torch.Tensor):
            return arg
        made = torch.empty_strided(arg.shape, arg.stride(), dtype=arg.dtype, device=arg.device)
        return made.requires_grad_(arg.requires_grad)

    def _backward(self, roots: list[torch.Tensor], leaves: list[torch.Tensor]) -> tuple[EagerOp, ...]:
        log = _Log()
        with self.shapes_only, torch.enable_grad():
            upstream = [torch.empty_like(root) for root in roots]
            with log:
                torch.autograd.grad(roots, leaves, upstream, allow_unused=True)
        return log.told()


class _Log(TorchDispatchMode):
    """Takes down each operator that passes."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._ops: list[EagerOp] = []

    def told(self) -> tuple[EagerOp, ...]:
        """The operators in order."""
        return tuple(self._ops)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Dynamo would otherwise skip every frame."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        parts = self._by_parts(func, args, kwargs)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **kwargs)
        told = _told(func, args, kwargs, result)
        if told is not None:
            self._ops.append(told)
        return result

    def _by_parts(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operator that only calls others, such as `linear`, of which those are taken down.

        Such operators come here whole in inference mode, where autograd does not take them apart.
        """
        if func.namespace == "prim":
            return NotImplemented
        with self:
            return func.decompose(*args, **kwargs)

    def _higher_order(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A hand-written kernel is one launch; what other operators of this kind do cannot be told from here."""
        if func.name() != "triton_kernel_wrapper_mutation":
            raise NotImplementedError(f"what {func.name()} runs without compilation is not known")
        self._ops.append(EagerOp(HAND_WRITTEN, (), 0, launches=Launches.UNKNOWN))
        return None


def _told(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> EagerOp | None:
    """The operator as a fact; None where the device has no part in it."""
    made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if func.namespace == "prim" or not any(leaf.device.type != "cpu" for leaf in (*made, *given)):
        return None  # questions about a tensor, or work of the host
    name = func.overloadpacket.__name__
    crosses = len({leaf.device.type for leaf in (*made, *given) if leaf.dim() > 0}) > 1
    return EagerOp(
        name=f"{func.namespace}.{name}.{func._overloadname}",
        operands=tuple(text_of(layout) for leaf in given for layout in layouts_of(leaf)),
        bytes_moved=_traffic(name, given, made),
        flops=_flops(func, args, kwargs, result),
        tf32=may_use_tf32(name),
        launches=_launches(func, name, made, crosses),
    )


def _launches(func: Any, name: str, made: list[torch.Tensor], crosses: bool) -> Launches:
    if name in _ALLOCATES or name in _LOOKS_LIKE or _is_view(func):
        return Launches.NOTHING
    if made and not any(leaf.numel() for leaf in made):
        return Launches.NOTHING  # ATen returns before it launches anything
    if crosses or name in ("_local_scalar_dense", "item"):  # a copy over the bus, and the wait for it
        return Launches.UNKNOWN
    return Launches.KERNELS


def _is_view(func: Any) -> bool:
    """Whether the results are the operands' own memory, unwritten."""
    returned = [value.alias_info for value in func._schema.returns]
    return bool(returned) and all(alias is not None and not alias.is_write for alias in returned)


def _traffic(name: str, given: list[torch.Tensor], made: list[torch.Tensor]) -> int:
    """Bytes when every operand is read and every result written once."""
    written = sum(map(_bytes, made))
    read = [_bytes(leaf) for leaf in given]
    if name in _READS_ROWS and read:  # as much of the table as there are results
        read[0] = min(read[0], written)
    if name in _ONLY_WRITES and read:
        read[0] = 0
    return written + sum(read)


def _bytes(tensor: torch.Tensor) -> int:
    """What its elements take in memory; those of an expanded dimension are the same."""
    if tensor.layout is not torch.strided:
        return 0
    sizes = [int(size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0]
    return math.prod(sizes) * tensor.element_size() if tensor.numel() else 0


def _flops(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int | None:
    formula = flop_registry.get(func.overloadpacket)
    if formula is None:
        return None
    with contextlib.suppress(Exception):  # a form of the operator that the formula does not know
        return int(formula(*args, **kwargs, out_val=result))
    return None


def _why(error: Exception) -> str:
    if isinstance(error, DataDependentOutputException | DynamicOutputShapeException):
        return "sizes or branches depend on data"
    text = str(error).strip().partition("\n")[0].rstrip(".")[:160]
    if isinstance(error, NotImplementedError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
