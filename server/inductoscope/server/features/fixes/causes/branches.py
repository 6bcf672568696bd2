"""A branch on a tensor's value: compute both sides and choose (`torch.where`), or branch on the device (`torch.cond`).

Rewritten are a conditional expression, and an `if` whose branches assign plain names or return.  Of everything else it
is said why it cannot be.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inductoscope.server.features.fixes.causes.assertions import plain_message
from inductoscope.server.features.fixes.causes.guards import is_about_sizes
from inductoscope.server.features.fixes.conditions import DATA_DEPENDENT, Conditions, NoTensorError
from inductoscope.server.features.fixes.model import Edit, Proposal, changes, refused, words
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import Kind, bound_by, parameters

_TITLE = "Changes behaviour: compute both branches and choose with torch.where"
_WHERE = "compute both branches and choose with torch.where (one type and shape for both)"
_COND = "branch on the device with torch.cond (both branches must give tensors of the same kind)"
_EFFECTS = words(
    "append extend update pop add insert remove clear setdefault write",
)


class NotSimpleError(ValueError):
    """A branch that cannot be rewritten; the message is a sentence for the user."""


@dataclass(frozen=True)
class _Choice:
    """What a name (None: the function's result) becomes when the condition holds, and when it does not."""

    name: str | None
    chosen: str
    other: str

    def line(self, value: str) -> str:
        """The statement that gives it `value`."""
        return f"return {value}" if self.name is None else f"{self.name} = {value}"


@dataclass(frozen=True)
class _Branch:
    """An `if` as choices; it and what belongs to it reach from `first` to `last`."""

    test: ast.expr
    choices: tuple[_Choice, ...]
    first: ast.stmt
    last: ast.stmt


def propose(problem: Problem) -> Iterator[Proposal]:
    """Both ways of doing without the branch, or why there is none."""
    if not problem.is_about(*DATA_DEPENDENT):
        return
    expression = _expression(problem)
    if expression is not None and not is_about_sizes(problem, expression.test):
        yield from _chosen(problem, expression)
        return
    statement = problem.statement
    if isinstance(statement, ast.While):
        yield refused(_TITLE, "A loop as long as the data says needs torch.while_loop, whose body you have to write.")
    if not isinstance(statement, ast.If) or is_about_sizes(problem, statement.test):
        return
    try:
        if _raises(statement):
            yield from _checked(problem, statement)
            return
        branch = _read(problem, statement)
        yield from _rewritten(problem, branch)
    except (NotSimpleError, NoTensorError) as error:
        yield refused(_TITLE, str(error))


def _expression(problem: Problem) -> ast.IfExp | None:
    """The conditional expression whose condition the finding marks."""
    for node in problem.here(ast.IfExp):
        assert isinstance(node, ast.IfExp)
        tests = set(ast.walk(node.test))
        if problem.node in tests or problem.node is node or isinstance(problem.node, ast.stmt):
            return node
    return None


def _chosen(problem: Problem, node: ast.IfExp) -> Iterator[Proposal]:
    code = problem.code
    torch, imports = code.module_name("torch")
    try:
        for side in (node.body, node.orelse):
            _require_pure(problem, side)
        _require_tensors(problem, node.body, node.orelse)
        test = Conditions(code, problem.values, torch).tensor(node.test)
    except (NotSimpleError, NoTensorError) as error:
        yield refused(_TITLE, str(error))
        return
    body, other = code.text(node.body), code.text(node.orelse)
    yield changes(_WHERE, code.replaced(node, f"{torch}.where({test}, {body}, {other})"), *imports)
    if not _is_number(body) and not _is_number(other):
        cond = f"{torch}.cond({test}, lambda: {_unaliased(body)}, lambda: {_unaliased(other)})"
        yield changes(_COND, code.replaced(node, cond), *imports)


def _rewritten(problem: Problem, branch: _Branch) -> Iterator[Proposal]:
    code = problem.code
    torch, imports = code.module_name("torch")
    test = Conditions(code, problem.values, torch).tensor(branch.test)
    lead: list[str] = []
    if len(branch.choices) > 1:
        name = code.fresh("condition")
        lead.append(f"{name} = {test}")
        test = name
    lines = [choice.line(f"{torch}.where({test}, {choice.chosen}, {choice.other})") for choice in branch.choices]
    yield changes(_WHERE, _put(problem, branch, [*lead, *lines]), *imports)
    if any(map(_is_number, (text for choice in branch.choices for text in (choice.chosen, choice.other)))):
        return
    lines = [
        choice.line(f"{torch}.cond({test}, lambda: {_unaliased(choice.chosen)}, lambda: {_unaliased(choice.other)})")
        for choice in branch.choices
    ]
    yield changes(_COND, _put(problem, branch, [*lead, *lines]), *imports)


def _put(problem: Problem, branch: _Branch, lines: Sequence[str]) -> Edit:
    """The new lines in place of the branch, below the comments that stood in it."""
    code = problem.code
    (first, column), (last, _) = code.start(branch.first), code.end(branch.last)
    indent = code.indent(branch.first)
    inside = [item for item in code.comments if first <= item.line <= last]
    kept = [item.text for item in inside if not any(item.text in line for line in lines)]
    text = f"\n{indent}".join([*kept, *lines])
    return code.over((first, column), (last, len(code.line(last))), text)


def _read(problem: Problem, statement: ast.If) -> _Branch:
    """Raises NotSimpleError."""
    code = problem.code
    returns = isinstance(statement.body[-1], ast.Return)
    last: ast.stmt = statement
    other: Sequence[ast.stmt] = statement.orelse
    if returns and not other:
        block = code.siblings(statement)
        following = block[block.index(statement) + 1 :] if statement in block else []
        if not following or not isinstance(following[0], ast.Return):
            raise NotSimpleError(
                "Only one branch returns here: put what follows into an `else` that ends with `return`."
            )
        last, other = following[0], [following[0]]
    if not code.stands_alone(statement) or not code.stands_alone(last):
        raise NotSimpleError("Another statement shares its lines: give each a line of its own first.")
    if problem.code.is_elif(statement):
        raise NotSimpleError("It is an `elif`: rewrite the branch that it belongs to first.")
    if returns:
        choices: tuple[_Choice, ...] = (_returned(problem, statement.body, other),)
    else:
        choices = _assigned(problem, statement, other)
    return _Branch(statement.test, choices, statement, last)


def _returned(problem: Problem, body: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> _Choice:
    sides = []
    for side in (body, other):
        if len(side) != 1 or not isinstance(side[0], ast.Return) or side[0].value is None:
            raise NotSimpleError("A branch does more than to return a value: compute before the branch first.")
        _require_pure(problem, side[0].value)
        sides.append(side[0].value)
    _require_tensors(problem, *sides)
    return _Choice(None, *(problem.code.text(side) for side in sides))


def _assigned(problem: Problem, statement: ast.If, other: Sequence[ast.stmt]) -> tuple[_Choice, ...]:
    chosen, others = (_assignments(problem, side) for side in (statement.body, other))
    names = list(dict.fromkeys([*chosen, *others]))
    _require_independent(problem, [*chosen.values(), *others.values()], names, statement)
    choices = []
    for name in names:
        for values in (chosen, others):
            if name not in values and not _is_set_before(problem, statement, name):
                raise NotSimpleError(
                    f"`{name}` has no value where only the other branch sets it: set it before the `if`."
                )
        set_here = chosen.get(name) or others[name]
        _require_tensors(
            problem, *(values[name].node if name in values else set_here.target for values in (chosen, others))
        )
        choices.append(_Choice(name, *(values[name].text if name in values else name for values in (chosen, others))))
    return tuple(choices)


@dataclass(frozen=True)
class _Value:
    target: ast.Name
    node: ast.expr
    text: str


def _assignments(problem: Problem, body: Sequence[ast.stmt]) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    for statement in body:
        if isinstance(statement, ast.Pass):
            continue
        named = _target(statement)
        if named is None:
            what = problem.code.line(statement.lineno).strip()
            raise NotSimpleError(f"A branch does more than to assign plain names or return: `{what}`.")
        target = named.id
        if target in found:
            raise NotSimpleError(f"A branch sets `{target}` twice: make it one expression first.")
        value = statement.value  # type: ignore[attr-defined]  # what has a target here has a value
        _require_pure(problem, value)
        text = problem.code.text(value)
        if isinstance(statement, ast.AugAssign):
            function = problem.function
            if function is not None and target in parameters(function) and not _rebound(problem, statement, target):
                raise NotSimpleError(f"`{target}` is changed in place and belongs to the caller.")
            text = f"{target} {_operator(problem, statement)} ({text})"
        found[target] = _Value(named, value, text)
    return found


def _target(statement: ast.stmt) -> ast.Name | None:
    match statement:
        case ast.Assign(targets=[ast.Name() as name]) | ast.AugAssign(target=ast.Name() as name):
            return name
        case ast.AnnAssign(target=ast.Name() as name, value=ast.expr()):
            return name
    return None


def _operator(problem: Problem, statement: ast.AugAssign) -> str:
    between = problem.code.between(problem.code.end(statement.target), problem.code.end(statement))
    return between.lstrip().partition("=")[0]


def _rebound(problem: Problem, statement: ast.stmt, name: str) -> bool:
    """Whether the function itself made what the parameter's name holds by then."""
    function = problem.function
    before = (node for node in ast.walk(function) if isinstance(node, ast.Assign)) if function else ()
    return any(node.lineno < statement.lineno and name in bound_by(node) for node in before)


def _require_independent(problem: Problem, values: Sequence[_Value], names: Sequence[str], statement: ast.If) -> None:
    if len(names) < 2:
        return
    for value in values:
        read = {node.id for node in ast.walk(value.node) if isinstance(node, ast.Name)}
        if read & set(names):
            shared = sorted(read & set(names))[0]
            raise NotSimpleError(f"What a branch assigns depends on `{shared}`, which it changes too: split the `if`.")


def _require_pure(problem: Problem, node: ast.expr) -> None:
    """Both branches are to be computed, so that neither may do anything but compute."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            raise NotSimpleError(f"`{problem.code.text(node)}` does more than to compute a value.")
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = part.func.attr
            if name in _EFFECTS or (name.endswith("_") and not name.startswith("_")):
                raise NotSimpleError(f"`{problem.code.text(part)}` changes something in place.")


def _require_tensors(problem: Problem, *sides: ast.expr) -> None:
    for side in sides:
        if problem.values.kind(side) is Kind.OTHER:
            raise NotSimpleError(
                f"`{problem.code.text(side)}` is no tensor: torch.where and torch.cond choose tensors."
            )
    if all(problem.values.kind(side) is Kind.NUMBER for side in sides):
        raise NotSimpleError("Both branches are numbers: as tensors they would no longer be usable as numbers.")


def _is_set_before(problem: Problem, statement: ast.If, name: str) -> bool:
    function = problem.function
    if function is None:
        return False
    if name in parameters(function):
        return True
    blocks = [statement, *(item for item in problem.code.ancestors(statement) if isinstance(item, ast.stmt))]
    for item in blocks:
        block = problem.code.siblings(item)
        earlier = block[: block.index(item)] if item in block else []
        if any(name in bound_by(other) for other in earlier):
            return True
        if item is function:
            return False
    return False


def _unaliased(text: str) -> str:
    """torch.cond gives back no tensor that it was given: a bare name is cloned."""
    return f"{text}.clone()" if text.isidentifier() else text


def _is_number(text: str) -> bool:
    """torch.cond chooses between tensors only, where torch.where also takes numbers."""
    return text.lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit()


def _raises(statement: ast.If) -> bool:
    return len(statement.body) == 1 and isinstance(statement.body[0], ast.Raise) and not statement.orelse


def _checked(problem: Problem, statement: ast.If) -> Iterator[Proposal]:
    """`if bad: raise …` becomes a check that the device makes, or one that only the uncompiled program makes."""
    code = problem.code
    torch, imports = code.module_name("torch")
    if not code.stands_alone(statement) or problem.code.is_elif(statement):
        raise NotSimpleError("It shares its lines with another statement or branch: give it lines of its own first.")
    test = Conditions(code, problem.values, torch).tensor(statement.test)
    raised = statement.body[0]
    assert isinstance(raised, ast.Raise)
    message = _message(problem, raised.exc)
    check = f"{torch}._assert_async({torch}.logical_not({test}), {message})"
    branch = _Branch(statement.test, (), statement, statement)
    title = "check on the device with torch._assert_async (raises RuntimeError)"
    yield changes(title, _put(problem, branch, [check]), *imports)
    guard = f"not {torch}.compiler.is_compiling() and "
    inner = code.text(statement.test)
    wrapped = f"({inner})" if isinstance(statement.test, ast.BoolOp | ast.IfExp | ast.NamedExpr) else inner
    title = "check this only when not compiled"
    yield changes(title, code.replaced(statement.test, f"{guard}{wrapped}"), *imports)


def _message(problem: Problem, raised: ast.expr | None) -> str:
    if isinstance(raised, ast.Call) and raised.args:
        first = raised.args[0]
        return (
            problem.code.text(first)
            if isinstance(first, ast.Constant)
            else json.dumps(plain_message(problem, first), ensure_ascii=False)
        )
    return json.dumps("a check failed")
