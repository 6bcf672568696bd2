"""A finding with the code that it is about: where a cause looks things up.  Pure: a text, a finding, facts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from inductoscope.protocol.report import Finding
from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.facts import Facts
from inductoscope.server.features.fixes.values import Values
from inductoscope.server.scanning.definitions import Function


@dataclass(frozen=True)
class Problem:
    """One finding in the text that is on screen."""

    code: Code
    finding: Finding
    facts: Facts

    @cached_property
    def values(self) -> Values:
        """What the names around the finding hold."""
        return Values(self.code, self.facts)

    @cached_property
    def node(self) -> ast.expr | ast.stmt | None:
        """The smallest expression or statement that covers what the finding marks, else its statement."""
        return self._covering or self.statement

    @cached_property
    def statement(self) -> ast.stmt | None:
        """The statement that holds what is marked, else the innermost one that begins at the line or goes over it."""
        if self._covering is not None:
            return self.code.statement_of(self._covering)
        line = self.finding.line
        inside = [
            node
            for node in self._nodes()
            if isinstance(node, ast.stmt) and self.code.start(node)[0] <= line <= self.code.end(node)[0]
        ]
        return max(inside, key=lambda node: (node.lineno, -node.col_offset), default=None)

    @cached_property
    def _covering(self) -> ast.expr | ast.stmt | None:
        """None where only a block around the line covers it: a whole line with its comment is marked."""
        finding = self.finding
        first, last = (finding.line, finding.column), (max(finding.end_line, finding.line), finding.end_column)
        if last <= first:
            return None
        around = [node for node in self._nodes() if self.code.start(node) <= first and last <= self.code.end(node)]
        found = min(around, key=self._size, default=None)
        is_block = isinstance(found, ast.stmt) and hasattr(found, "body")
        return None if found is None or (is_block and self.code.start(found)[0] < finding.line) else found

    @cached_property
    def function(self) -> Function | None:
        """The function that holds the finding."""
        at = self.statement
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            return at
        return self.code.function_of(at) if at else None

    def is_about(self, *ids: str) -> bool:
        """Whether torch gave the break one of these ids, or, as older versions do, none."""
        return self.finding.id is None or self.finding.id in ids

    @cached_property
    def is_left_out(self) -> bool:
        """Whether compiled code leaves the place out already, by asking `torch.compiler.is_compiling()`."""
        at = self.node or self.statement
        around = (node for node in self.code.ancestors(at) if isinstance(node, ast.If | ast.IfExp)) if at else ()
        return any("is_compiling" in ast.dump(node.test) for node in around)

    def here(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of these kinds that the finding can be about, the likeliest first.

        Those are the marked node, what it holds, and what holds it inside its statement.
        """
        marked = self.node
        if marked is None or self.statement is None:
            return
        seen: set[ast.AST] = set()
        for node in (marked, *own_parts(marked), *self._inside(marked)):
            if isinstance(node, kinds) and node not in seen:
                seen.add(node)
                yield node

    def calls(self) -> Iterator[ast.Call]:
        """The calls that the finding can be about, the likeliest first."""
        for node in self.here(ast.Call):
            assert isinstance(node, ast.Call)
            yield node

    def _inside(self, node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
        if isinstance(node, ast.stmt):
            return
        for parent in self.code.ancestors(node):
            yield parent
            if isinstance(parent, ast.stmt):
                return

    def _nodes(self) -> Sequence[ast.expr | ast.stmt]:
        """Those that go over the finding's line."""
        return self.code.by_line.get(self.finding.line, ())

    def _size(self, node: ast.expr | ast.stmt) -> tuple[int, int, bool]:
        (first, column), (last, end) = self.code.start(node), self.code.end(node)
        return last - first, end - column, isinstance(node, ast.stmt)


def own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a node holds outside of the statements and functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.Lambda | ast.excepthandler | ast.match_case):
            yield child
            yield from own_parts(child)
