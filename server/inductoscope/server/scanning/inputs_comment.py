"""The `# inductoscope:` comments of a file: which definition each stands above, and what is wrong with it.

The language inside the comment is `protocol.input_spec`'s; this module knows where comments stand and whether they fit
the signature below them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol import input_spec
from inductoscope.server.scanning.definitions import Function
from inductoscope.server.scanning.syntax import Source


@dataclass(frozen=True)
class Problem:
    """A sentence about a comment, with its place: 1-based line, code point columns."""

    message: str
    line: int
    column: int
    end_column: int


@dataclass(frozen=True)
class Found:
    """The comment above a definition; `text` is None when it makes no sense, and `problems` say why."""

    text: str | None
    problems: tuple[Problem, ...]
    lines: tuple[int, ...]


def above(source: Source, node: ast.stmt, function: Function | None) -> Found | None:
    """The comment directly above `node` or between its decorators; `function` is what it is about, where known."""
    first = _first_line(node)
    start = first
    while source.text.line(start - 1).lstrip().startswith("#"):
        start -= 1
    comment = input_spec.find_comment([source.text.line(line) for line in range(start, node.lineno)])
    if comment is None:
        return None
    lines = tuple(start + index for index, _ in comment.origins)
    try:
        sets = input_spec.parse(comment.text)
    except input_spec.InputSpecError as error:
        index, column = comment.place(error)
        message = f"This inputs comment cannot be read: {error}{'' if str(error).endswith('?') else '.'}"
        return Found(None, (_problem(source, message, start + index, column),), lines)
    misfits = [] if function is None else _misfits(sets, function)
    problems = tuple(_problem(source, message, lines[0], comment.origins[0][1]) for message in misfits)
    return Found(None if problems else comment.text, problems, lines)


def stray(source: Source, taken: set[int]) -> Iterator[Problem]:
    """A problem for each inputs comment on a line that no definition took."""
    if input_spec.PREFIX not in source.text.source:
        return
    for line, column in _comments(source):
        if line not in taken:
            message = (
                "This inputs comment belongs to nothing. Put it directly above a function, class or assignment "
                "of the module, or above a method."
            )
            yield _problem(source, message, line, column)


def suggestion(function: Function | None) -> str:
    """A comment to start from, with the parameter names of `function`."""
    needed = [] if function is None else [arg for arg, has_default in _parameters(function) if not has_default]
    arguments = ", ".join(f"{arg.arg}={_example(arg)}" for arg in needed)
    return f"# {input_spec.PREFIX} {arguments or 'f32[4, 128]'}"


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _comments(source: Source) -> Iterator[tuple[int, int]]:
    """Line and column of each comment with the prefix, told from strings by the tokenizer."""
    marker = re.compile(rf"#\s*{re.escape(input_spec.PREFIX)}")
    text = "\n".join(source.text.lines)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and marker.match(token.string):
                yield token.start
    except (tokenize.TokenError, SyntaxError):  # the parser took the file, so there is no more to find
        return


def _problem(source: Source, message: str, line: int, column: int) -> Problem:
    return Problem(message, line, column, max(len(source.text.line(line).rstrip()), column + 1))


def _misfits(sets: tuple[input_spec.CallSpec, ...], function: Function) -> Iterator[str]:
    """What keeps the argument sets from being passed to `function`."""
    parameters = _parameters(function)
    known = {arg.arg for arg, _ in parameters}
    positional = len(parameters) - len(function.args.kwonlyargs)
    for one in sets:
        named = {argument.name for argument in one.arguments if argument.name}
        count = len(one.arguments) - len(named)
        unknown = sorted(named - known) if function.args.kwarg is None else []
        if unknown:
            yield f"{function.name}() has no parameter {unknown[0]!r}; it takes {', '.join(sorted(known)) or 'none'}."
            return
        if count > positional and function.args.vararg is None:
            yield f"{function.name}() takes at most {positional} arguments by position, and {count} are given."
            return
        missing = [arg.arg for arg, has_default in parameters[count:] if not has_default and arg.arg not in named]
        if missing:
            yield f"The parameter {missing[0]!r} of {function.name}() is not given and has no default."
            return


def _parameters(function: Function) -> list[tuple[ast.arg, bool]]:
    """Parameters in order, and whether each has a default; `self`, `*args` and `**kwargs` left out."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    pairs = [(arg, index >= without) for index, arg in enumerate(positional)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs += [(arg, default is not None) for arg, default in keywords]
    return pairs[1:] if pairs and pairs[0][0].arg in ("self", "cls") else pairs


def _example(arg: ast.arg) -> str:
    kind = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    return {"int": "8", "float": "0.5", "bool": "True", "str": "'text'"}.get(kind, "f32[4, 128]")
