"""Where torch's passes over FX graphs begin and end, and which patterns they replace.

Private parts of torch, checked by running on torch 2.11 to 2.15:
- `GraphTransformObserver` (`torch.fx.passes.graph_transform_observer`): a context manager around nearly every pass of
  Inductor, with the graph (`gm`) and the pass's name (`passname`).
- `_recursive_{pre,joint,post}_grad_passes(gm, ...)` in `compile_fx`, `freeze(dynamo_gm, gm, inputs)` in `freezing`:
  the stages; each calls itself for the subgraphs first.
- `PatternEntry.apply(match, graph, node)` and its subclasses: called once for each replacement, right before torch
  counts it (`counters["inductor"]["pattern_matcher_count"]`, and `len(match.nodes)`).
- Functions that are passes though no observer stands around them: `FUNCTIONS`.
- `_InProcessFxCompile.codegen_and_compile(gm, inputs, inputs_to_check, graph_kwargs)`: whether it is a backward graph.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat.inductor import Point
from inductoscope.protocol.report import PassStage

_I = "torch._inductor."
OBSERVER_ENTER = Point("torch.fx.passes.graph_transform_observer", "GraphTransformObserver.__enter__", "a pass begins")
OBSERVER_EXIT = Point("torch.fx.passes.graph_transform_observer", "GraphTransformObserver.__exit__", "a pass has ended")
ELIMINATE_DEAD_CODE = Point("torch.fx", "Graph.eliminate_dead_code", "a pass that no observer stands around")
PATTERNS = (
    Point(_I + "pattern_matcher", "ReplacementPatternEntry.apply", "a pattern is replaced"),
    Point(_I + "pattern_matcher", "GraphPatternEntry.apply", "a pattern is replaced"),
    Point(_I + "pattern_matcher", "LoweringPatternEntry.apply", "a pattern is replaced"),
)
CODEGEN = Point(_I + "compile_fx", "_InProcessFxCompile.codegen_and_compile", "forward or backward?", required=False)

UNNAMED = "pattern_matcher"
"""What torch calls a pattern pass that has no name, always inside of one that has."""


@dataclass(frozen=True)
class StagePoint:
    """A function that runs the passes of a stage over the graph that is its argument number `argument`."""

    point: Point
    stage: PassStage
    argument: int = 0


STAGES = (
    StagePoint(Point(_I + "compile_fx", "_recursive_pre_grad_passes", "a stage of passes"), PassStage.PRE_GRAD),
    StagePoint(Point(_I + "compile_fx", "_recursive_joint_graph_passes", "a stage of passes"), PassStage.JOINT),
    StagePoint(Point(_I + "compile_fx", "_recursive_post_grad_passes", "a stage of passes"), PassStage.POST_GRAD),
    StagePoint(Point(_I + "freezing", "freeze", "a stage of passes", required=False), PassStage.FREEZING, argument=1),
)


@dataclass(frozen=True)
class FunctionPoint:
    """A pass that is a plain function of a graph or of a module that has one."""

    point: Point
    stage: PassStage

    @property
    def name(self) -> str:
        """The name to show."""
        return self.point.name


FUNCTIONS = (
    FunctionPoint(Point(_I + "compile_fx", "view_to_reshape", "no observer"), PassStage.POST_GRAD),
    FunctionPoint(Point(_I + "freezing", "view_to_reshape", "no observer"), PassStage.FREEZING),
    FunctionPoint(Point(_I + "freezing", "constant_fold", "no observer"), PassStage.FREEZING),
    FunctionPoint(Point(_I + "freezing", "replace_params_with_constants", "no observer"), PassStage.FREEZING),
    FunctionPoint(Point(_I + "fx_passes.pre_grad", "numpy_compat_normalization", "no observer"), PassStage.PRE_GRAD),
    FunctionPoint(Point(_I + "fx_passes.pre_grad", "stable_topological_sort", "no observer"), PassStage.PRE_GRAD),
    FunctionPoint(Point(_I + "fx_passes.joint_graph", "canonicalize_aten_ir_passes", "no observer"), PassStage.JOINT),
    FunctionPoint(Point(_I + "fx_passes.joint_graph", "stable_topological_sort", "no observer"), PassStage.JOINT),
)
SHARED_SUBEXPRESSIONS = (
    Point("torch._functorch.partitioners", "fx_graph_cse", "makes a new graph in which nothing is computed twice"),
    Point(_I + "freezing", "fx_graph_cse", "makes a new graph in which nothing is computed twice", required=False),
)
DYNAMO = tuple(
    Point("torch._dynamo.output_graph", f"OutputGraph.{name}", "tidies up the captured graph", required=False)
    for name in (
        "cleanup_graph",
        "dedup_pass",
        "remove_unused_get_attr_nodes",
        "remove_unused_graphargs",
        "remove_tensorify_specialized_graphargs",
    )
)

_TRACERS = frozenset({"torch._functorch._aot_autograd.graph_capture", "torch._functorch._aot_autograd.graph_compile"})


def called_by_tracer() -> bool:
    """Whether the caller of our caller is the part of AOTAutograd that has just traced a graph."""
    return sys._getframe(2).f_globals.get("__name__") in _TRACERS


def graph_of(value: Any) -> torch.fx.Graph | None:
    """The graph that a pass works on: its argument may be the graph, or a module that has one."""
    graph = value if isinstance(value, torch.fx.Graph) else getattr(value, "graph", None)
    return graph if isinstance(graph, torch.fx.Graph) else None


def pattern_name(entry: Any) -> str:
    """torch's name for a pattern: that of the function it was written as, or of the function that replaces it.

    A function made inside of another one, as for oneDNN, is named after that.
    """
    written = getattr(entry, "handler", None) or _search_function(entry)
    name = getattr(entry, "pattern_name", None) or getattr(written, "__qualname__", None)
    return str(name).partition(".<locals>")[0] if name else type(entry.pattern).__name__


def _search_function(entry: Any) -> Any:
    """The function that a pattern was traced from: before 2.12 an entry keeps no name, but its check refers to it."""
    check = getattr(entry, "extra_check", None)
    names = getattr(getattr(check, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(check, "__closure__", None) or (), strict=False))
    return cells["search_fn"].cell_contents if "search_fn" in cells else None


def is_backward(graph_kwargs: Any) -> bool:
    """Whether Inductor is given a backward graph, by the arguments of `CODEGEN`."""
    return bool(graph_kwargs.get("is_backward")) if isinstance(graph_kwargs, dict) else False
