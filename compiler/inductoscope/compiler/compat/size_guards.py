"""Conditions on symbolic sizes that lowering a graph adds to a compilation, and how to add them without lowering.

Inductor looks at sizes while it works (is this index below 2**31, is that dimension a multiple of 8), and what it saw
becomes a guard of the program.  Whoever leaves Inductor out has to add the same guards.

Private parts of torch, checked by running on 2.11 to 2.15: `ShapeEnv.guards` (`ShapeGuard.expr`, `size_oblivious`),
`ShapeEnv.evaluate_expr`, which adds a guard as Inductor does, and `exclusion_constraints` (not in all of them), sizes
that an earlier version of the function serves.  This module knows nothing of stores or reports.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from torch.utils._sympy import functions

from inductoscope.compiler.compat import identity

_KNOWN = {"true": sympy.true, "false": sympy.false}


@dataclass(frozen=True)
class SizeGuard:
    """A condition that holds, as `sympy.srepr` writes it."""

    expression: str
    size_oblivious: bool


@dataclass(frozen=True)
class Excluded:
    """A size that a symbol must not have, since an earlier version of the function serves it."""

    symbol: str
    size: int


@dataclass(frozen=True)
class Added:
    """What was added, in order, and a hash of all that is known of sizes after that."""

    guards: tuple[SizeGuard, ...]
    excluded: tuple[Excluded, ...]
    after: str


NOTHING = Added((), (), "")


@dataclass(frozen=True)
class Before:
    """How many guards, excluded sizes and checks at run time there were."""

    guards: int
    excluded: int
    asserts: int


class NotRepeatableError(Exception):
    """Lowering changed what is known of sizes in a way that cannot be done without it."""


def before() -> Before:
    """To be asked before lowering, for `added`."""
    env = identity.shape_env()
    return Before(len(getattr(env, "guards", ())), len(_excluded(env)), _asserts(env))


def added(since: Before) -> Added:
    """What was added to the compilation under way.  Raises `NotRepeatableError`."""
    env = identity.shape_env()
    if _asserts(env) != since.asserts:
        raise NotRepeatableError("a check of a size at run time")
    made = getattr(env, "guards", [])[since.guards :]
    guards = tuple(SizeGuard(sympy.srepr(guard.expr), bool(guard.size_oblivious)) for guard in made)
    for kept, guard in zip(guards, made, strict=True):
        if _expression(kept.expression, _symbols(env)) != guard.expr:
            raise NotRepeatableError(f"the guard {guard.expr}")
    excluded = tuple(Excluded(str(symbol), int(size)) for symbol, size in _excluded(env)[since.excluded :])
    return Added(guards, excluded, _state(env))


def add(what: Added) -> bool:
    """Add the same to the compilation under way; false where what is known of sizes is not the same after that."""
    env = identity.shape_env()
    if env is not None:
        symbols = _symbols(env)
        for guard in what.guards:
            env.evaluate_expr(_expression(guard.expression, symbols), size_oblivious=guard.size_oblivious)
        for one in what.excluded:
            env.exclusion_constraints.append((symbols[one.symbol], one.size))
    return _state(env) == what.after


def _excluded(env: Any) -> list[Any]:
    return list(getattr(env, "exclusion_constraints", ()))


def _asserts(env: Any) -> int:
    return int(getattr(env, "num_deferred_runtime_asserts", 0))


def _symbols(env: Any) -> dict[str, sympy.Symbol]:
    return {str(symbol): symbol for symbol in env.var_to_range}


def _state(env: Any) -> str:
    try:
        known = identity.sizes_text(env)
    except identity.UncertainError as uncertain:
        raise NotRepeatableError(str(uncertain)) from uncertain
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()


def _expression(text: str, symbols: Mapping[str, sympy.Symbol]) -> Any:
    """The expression that `sympy.srepr` wrote, over the given symbols.  Raises `NotRepeatableError`."""
    try:
        return _built(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, KeyError, TypeError, ValueError) as error:
        raise NotRepeatableError(f"the guard {text}") from error


def _built(node: ast.expr, symbols: Mapping[str, sympy.Symbol]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_built(node.operand, symbols)
    if isinstance(node, ast.Name):
        return _KNOWN[node.id]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(ast.dump(node))
    if node.func.id == "Symbol":
        return symbols[_built(node.args[0], symbols)]
    made = getattr(functions, node.func.id, None) or getattr(sympy, node.func.id, None)
    if not isinstance(made, type) or not issubclass(made, sympy.Basic) or node.keywords:
        raise ValueError(ast.dump(node))
    return made(*(_built(argument, symbols) for argument in node.args))
