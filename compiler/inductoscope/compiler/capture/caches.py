"""What the compile caches can do with a graph.

A run of ours keeps the caches out of the way, so nothing is looked up or saved.  Whether torch would cache a graph is
known all the same: its own check of each node says so.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

import torch
from torch import fx

from inductoscope.compiler.capture import nodes
from inductoscope.compiler.capture.syntax import decorators_at, withs_at
from inductoscope.compiler.compat import caches, dynamo
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.report import CacheFact, Phase

AOT_CACHE = "aot_autograd"


class Program(enum.Enum):
    """Whether the calls that we make are all that the user's program does with what it compiled."""

    WHOLE = "whole"
    SAMPLE = "sample"  # our own calls, made to see what compiling does; the real program may go on, for instance train


@dataclass(frozen=True)
class Bypass:
    """A graph that the AOTAutograd cache refuses, and the line at fault where it is known."""

    reason: str
    at: Frame | None
    what: str


def bypass(module: fx.GraphModule, user_code: UserCode) -> Bypass | None:
    """Why the AOTAutograd cache would not take this graph, None where it would."""
    for node in module.graph.nodes:
        reason = dynamo.uncacheable(node)
        if reason is not None:
            what = getattr(node.target, "__name__", str(node.target)).removeprefix("_enter_")
            return Bypass(caches.refusal_text(reason), _place(node, what, user_code), what)
    return None


def refused(bypass: Bypass, graph: str) -> CacheFact:
    """The report's entry for a graph that is refused."""
    at = (bypass.at.file, bypass.at.line) if bypass.at else (None, None)
    return CacheFact(AOT_CACHE, "bypass", (bypass.reason,), graph, None, Phase.FORWARD, *at)


def never_saved(graph: str) -> CacheFact:
    """The report's entry for a graph whose backward pass the program never asks for."""
    because = ("the backward was never compiled, and the entry is saved with it",)
    return CacheFact(AOT_CACHE, "miss", because, graph, None, Phase.FORWARD)


def trains(module: fx.GraphModule) -> bool:
    """Whether AOTAutograd makes a backward for this graph: some output wants gradients."""
    outputs = next(node for node in reversed(module.graph.nodes) if node.op == "output").all_input_nodes
    values = (node.meta.get("example_value") for node in outputs)
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)


def _place(node: fx.Node, what: str, user_code: UserCode) -> Frame | None:
    """The node's line; Dynamo keeps none for what enters a context, so that is looked for around what comes next."""
    if at := user_code.innermost(nodes.stack(node)):
        return at
    following = node.next
    while following.op != "root" and not nodes.stack(following):
        following = following.next
    frames = user_code.chain(nodes.stack(following))
    entered = (_entered(frame, what) for frame in reversed(frames))
    return next((frame for frame in entered if frame), frames[-1] if frames else None)


def _entered(frame: Frame, manager: str) -> Frame | None:
    """The `with` statement or decorator around `frame` whose text names `manager`."""
    lines = [block.line for block in withs_at(frame.file, frame.line) if manager in _header(block.node)]
    lines += [node.lineno for node in decorators_at(frame.file, frame.line) if manager in ast.unparse(node)]
    return Frame(frame.file, max(lines), frame.function) if lines else None


def _header(node: ast.AST) -> str:
    return " ".join(map(ast.unparse, node.items)) if isinstance(node, ast.With | ast.AsyncWith) else ""
