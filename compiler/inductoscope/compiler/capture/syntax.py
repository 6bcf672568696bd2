"""What a line of source is part of: a function, and loops and `with` statements of its own function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.compiler.capture.spans import syntax_tree

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Block:
    """A compound statement or comprehension: the line it starts on, and the lines that it repeats or governs."""

    file: str
    line: int
    first: int
    last: int
    node: ast.AST


def loops_at(file: str, line: int) -> tuple[Block, ...]:
    """The loops around `line` within its function, outermost first."""
    return tuple(block for node in _around(file, line) if (block := _loop(file, node)) and _covers(block, line))


def withs_at(file: str, line: int) -> tuple[Block, ...]:
    """The `with` statements whose body holds `line`, within its function, outermost first."""
    return tuple(block for node in _around(file, line) if (block := _with(file, node)) and _covers(block, line))


def decorators_at(file: str, line: int) -> tuple[ast.expr, ...]:
    """The decorators of the function whose body holds `line`."""
    holder = function_at(file, line)
    return tuple(holder.decorator_list) if holder is not None else ()


def function_at(file: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function, other than a lambda, whose body holds `line`."""
    tree = syntax_tree(file) or ast.Module([], [])
    holders = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _in_body(node, line) and line <= _end(node)
    ]
    return max(holders, key=lambda node: node.lineno, default=None)


def _covers(block: Block, line: int) -> bool:
    return block.first <= line <= block.last


def _loop(file: str, node: ast.AST) -> Block | None:
    if isinstance(node, ast.For | ast.AsyncFor):
        return Block(file, node.lineno, node.body[0].lineno, _end(node.body[-1]), node)
    if isinstance(node, ast.While):
        return Block(file, node.lineno, node.lineno, _end(node.body[-1]), node)
    if isinstance(node, _Comprehension):
        return Block(file, node.lineno, node.lineno, _end(node), node)
    return None


def _with(file: str, node: ast.AST) -> Block | None:
    if isinstance(node, ast.With | ast.AsyncWith):
        return Block(file, node.lineno, node.body[0].lineno, _end(node.body[-1]), node)
    return None


def _around(file: str, line: int) -> Iterator[ast.AST]:
    """The nodes whose lines include `line`, outermost first, from the innermost function on."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [syntax_tree(file) or ast.Module([], [])]
    while waiting:
        node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            start = getattr(child, "lineno", None)
            if start is not None and not start <= line <= _end(child):
                continue
            if isinstance(child, _Function) and _in_body(child, line):
                found, waiting = [], []
            found.append(child)
            waiting.append(child)
    return iter(found)


def _in_body(function: _Function, line: int) -> bool:
    """Decorators and defaults belong to the function around."""
    first = function.body.lineno if isinstance(function, ast.Lambda) else function.body[0].lineno
    return line >= first


def _end(node: ast.AST) -> int:
    end: int = getattr(node, "end_lineno", None) or getattr(node, "lineno", None) or 0
    return end
