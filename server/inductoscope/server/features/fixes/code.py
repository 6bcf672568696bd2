"""A text to be edited: its syntax tree, the exact text of each node, and edits that keep its layout.

Columns of `ast` count UTF-8 bytes; all columns that leave this module are code points.  Knows nothing of findings.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from inductoscope.server.features.fixes.model import Edit
from inductoscope.server.scanning import syntax
from inductoscope.server.scanning.definitions import Function, Module
from inductoscope.server.scanning.syntax import Source

Place: TypeAlias = "tuple[int, int]"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_STEP = "    "
_HEADER = re.compile(r"#!|#.*coding[:=]")  # have to stay the first lines of a file
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Comment:
    """A comment, from its `#` to the end of its line."""

    line: int
    column: int
    text: str


class Code:
    """The text of a file, and edits of it."""

    def __init__(self, source: Source, raw: str) -> None:
        self.source = source
        self.tree = source.tree
        self.module = Module(source)
        self._raw = raw
        self._mark = int(raw.startswith("\ufeff"))  # editors keep it, `ast` does not count it

    def line(self, number: int) -> str:
        """A line, counted from 1, without its end."""
        return self.source.text.line(number)

    @cached_property
    def newline(self) -> str:
        """How lines end here."""
        found = _LINE_END.search(self._raw)
        return found.group() if found else "\n"

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """Every comment of the file."""
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(self.source.text.source).readline))
        except (tokenize.TokenError, SyntaxError):
            return ()
        return tuple(Comment(*token.start, token.string) for token in tokens if token.type == tokenize.COMMENT)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that holds each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def by_line(self) -> dict[int, list[ast.expr | ast.stmt]]:
        """The expressions and statements that go over each line, a definition with its decorators."""
        found: dict[int, list[ast.expr | ast.stmt]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr | ast.stmt):
                decorators = getattr(node, "decorator_list", None)
                first = decorators[0].lineno if decorators else node.lineno
                for line in range(first, (node.end_lineno or node.lineno) + 1):
                    found.setdefault(line, []).append(node)
        return found

    # Where things are

    def start(self, node: ast.expr | ast.stmt) -> Place:
        """Where a node begins: a definition with its first decorator."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            line, column = self.start(decorators[0])
            return line, self.line(line).rindex("@", 0, column)
        return node.lineno, self.source.column(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> Place:
        """Where a node ends."""
        line = node.end_lineno or node.lineno
        return line, self.source.column(line, node.end_col_offset or 0)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, as written."""
        return self.between(self.start(node), self.end(node))

    def between(self, first: Place, last: Place) -> str:
        """The text between two places, its lines ended as the file ends them."""
        lines = [self.line(number) for number in range(first[0], last[0] + 1)]
        lines[-1] = lines[-1][: last[1]]
        lines[0] = lines[0][first[1] :]
        return self.newline.join(lines)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function_of(self, node: ast.AST) -> Function | None:
        """The function whose body holds a node."""
        return next((item for item in self.ancestors(node) if isinstance(item, _FUNCTIONS)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that holds a node."""
        return next((item for item in self.ancestors(node) if isinstance(item, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The statement that holds a node; a statement holds itself."""
        chain = (node, *self.ancestors(node))
        return next((item for item in chain if isinstance(item, ast.stmt)), None)

    def siblings(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        """The block that a statement stands in."""
        parent = self.parents.get(statement, self.tree)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return (statement,)

    def dotted(self, node: ast.expr) -> str:
        """The full name of names and dots by way of the imports of the file, else an empty text."""
        return self.module.dotted(node) or ""

    def is_elif(self, statement: ast.stmt) -> bool:
        """Whether it is the `elif` of another statement."""
        return isinstance(statement, ast.If) and self.line(statement.lineno)[: statement.col_offset + 4].endswith(
            "elif"
        )

    def constructor_of(self, node: ast.AST) -> Function | None:
        """The `__init__` of the class around a node, where it is of the class's own and ends with a plain statement."""
        owner = self.class_of(node)
        found = self.module.method(owner, "__init__") if owner else None
        if owner is None or found is None or found not in owner.body:
            return None
        last = found.body[-1]
        plain = not isinstance(last, ast.Return) and self.stands_alone(last) and last.lineno > found.lineno
        return found if plain else None

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing but a comment shares the lines of a statement."""
        (first, column), (last, end) = self.start(statement), self.end(statement)
        after = self.line(last)[end:].strip()
        return not self.line(first)[:column].strip() and after[:1] in ("", "#")

    def can_be_indented(self, statement: ast.stmt) -> bool:
        """Whether no string of it spans lines, which indenting would change."""
        strings = (node for node in ast.walk(statement) if isinstance(node, ast.Constant | ast.JoinedStr))
        return all(node.lineno == node.end_lineno for node in strings)

    # Edits

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Another text for a node."""
        return self.over(self.start(node), self.end(node), text)

    def over(self, first: Place, last: Place, text: str) -> Edit:
        """Another text for what is between two places."""
        return Edit(*self._outside(first), *self._outside(last), self.ended(text))

    def ended(self, text: str) -> str:
        """The text with its lines ended as the file ends them."""
        return self.newline.join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    def without(self, statement: ast.stmt) -> Edit:
        """Remove a statement that stands alone, with its lines; `pass` stays where a block would be empty."""
        first, last = statement.lineno, self.end(statement)[0]
        if len(self.siblings(statement)) == 1:
            return self.replaced(statement, "pass")
        kept = [item for item in self.comments if item.line == last and item.column >= self.end(statement)[1]]
        text = "".join(f"{self.indent(statement)}{item.text}\n" for item in kept)
        return self.over((first, 0), (last + 1, 0), text)

    def cut(self, statement: ast.stmt) -> Edit:
        """Take out a statement that stands alone, with its lines and their comments, to be put elsewhere."""
        return self.over((statement.lineno, 0), (self.end(statement)[0] + 1, 0), "")

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """New lines above a statement (and its decorators), as far in as it is."""
        line = self.start(statement)[0]
        return self.over((line, 0), (line, 0), "".join(f"{self.indent(statement)}{text}\n" for text in lines))

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        """New lines below a statement, as far in as it is."""
        last = self.end(statement)[0]
        added = "".join(f"{self.indent(statement)}{text}\n" for text in lines)
        if last >= len(self.source.text.lines):  # the file ends without a line end
            place = (last, len(self.line(last)))
            return self.over(place, place, f"\n{added.removesuffix(chr(10))}")
        return self.over((last + 1, 0), (last + 1, 0), added)

    def under(self, statement: ast.stmt, head: str) -> Edit:
        """A statement that stands alone, moved into a block of its own under `head`."""
        (first, _), (last, _) = self.start(statement), self.end(statement)
        lines = [self.line(number) for number in range(first, last + 1)]
        moved = "\n".join(f"{self.step(statement)}{line}" if line.strip() else line for line in lines)
        text = f"{self.indent(statement)}{head}\n{moved}"
        return self.over((first, 0), (last, len(self.line(last))), text)

    def indent(self, statement: ast.stmt) -> str:
        """The white space before the line of a statement."""
        text = self.line(self.start(statement)[0])
        return text[: len(text) - len(text.lstrip())]

    def step(self, statement: ast.stmt) -> str:
        """One level of indentation, as the blocks around a statement have it."""
        around = [item for item in self.ancestors(statement) if isinstance(item, ast.stmt)]
        for inner, outer in zip([statement, *around], around, strict=False):
            deep, shallow = self.indent(inner), self.indent(outer)
            if deep != shallow and deep.startswith(shallow):
                return deep[len(shallow) :]
        return _STEP

    # Names

    def module_name(self, module: str) -> tuple[str, tuple[Edit, ...]]:
        """How a module is called in this file, and the import that has to be added for it where there is none."""
        for statement in self.tree.body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if alias.name == module and (alias.asname or "." not in module):
                        return alias.asname or module, ()
        return module, (self._import(f"import {module}"),)

    def imported(self, module: str, name: str) -> tuple[str, tuple[Edit, ...]]:
        """How something of a module is called in this file, and the import to be added where there is none."""
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == module and not statement.level:
                for alias in statement.names:
                    if alias.name == name:
                        return alias.asname or name, ()
        return name, (self._import(f"from {module} import {name}"),)

    def is_imported(self, name: str) -> bool:
        """Whether a name is imported by a statement of the module's own, above its first definition."""
        imports = [item for item in self._leading(ast.Import | ast.ImportFrom) if not _is_future(item)]
        aliases = [alias for item in imports if isinstance(item, ast.Import | ast.ImportFrom) for alias in item.names]
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in aliases)

    def fresh(self, name: str) -> str:
        """`name`, or the first of `name_2`, `name_3`… that the file does not use."""
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)} | set(self.module.names)
        tries = (name if number == 1 else f"{name}_{number}" for number in range(1, len(used) + 3))
        return next(text for text in tries if text not in used)

    def at_top(self, line: str) -> Edit | None:
        """A statement of the module's own, below its imports; None where the same one stands there already."""
        wanted = ast.parse(line).body[0]
        alike = (statement for statement in self.tree.body if type(statement) is type(wanted))
        if any(ast.dump(statement) == ast.dump(wanted) for statement in alike):
            return None
        imports = self._leading(ast.Import | ast.ImportFrom)
        if not imports:
            return self._insert_head(line)
        last = self.end(imports[-1])[0]
        sharing = [statement for statement in self.tree.body if statement.lineno == last]
        return self.after((sharing or imports)[-1], "", line)

    def _import(self, line: str) -> Edit:
        imports = [item for item in self._leading(ast.Import | ast.ImportFrom) if not _is_future(item)]
        if imports and not self.line(imports[0].lineno)[: imports[0].col_offset].strip():
            return self.before(imports[0], line)
        return self._insert_head(line)

    def _insert_head(self, line: str) -> Edit:
        """A first statement, below the docstring and what has to come before everything else."""
        head = [item for item in self.tree.body if _is_future(item) or _is_docstring(item, self.tree)]
        if head:
            return self.after(head[-1], line)
        first = next(iter(self.tree.body), None)
        top = self.start(first)[0] if first else 1
        while top > 1 and self.line(top - 1).startswith("#") and not _HEADER.match(self.line(top - 1)):
            top -= 1
        return self.over((top, 0), (top, 0), f"{line}\n")

    def _leading(self, kinds: object) -> list[ast.stmt]:
        """The imports of the module level before its first definition."""
        found: list[ast.stmt] = []
        for statement in self.tree.body:
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                break
            if isinstance(statement, kinds):  # type: ignore[arg-type]
                found.append(statement)
        return found

    def _outside(self, place: Place) -> Place:
        line, column = place
        return line, column + (self._mark if line == 1 else 0)


@lru_cache(maxsize=8)
def read(raw: str, path: str) -> Code | None:
    """The text as code, or None when it is not Python."""
    source = syntax.parse(raw, path)
    return Code(source, raw) if isinstance(source, Source) else None


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_docstring(statement: ast.stmt, tree: ast.Module) -> bool:
    return (
        statement is tree.body[0]
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
