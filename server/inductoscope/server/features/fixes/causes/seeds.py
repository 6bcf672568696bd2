"""Generators that are seeded in compiled code: torch leaves them to Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused, words
from inductoscope.server.features.fixes.problem import Problem

_SEEDS = words(
    "torch.manual_seed torch.seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.random.manual_seed",
    "random.seed numpy.random.seed torch.set_rng_state torch.cuda.set_rng_state torch.random.set_rng_state",
)
_TITLE = "Changes behaviour: seed only when not compiled"


def propose(problem: Problem) -> Iterator[Proposal]:
    """Seed only outside of compiled code."""
    statement, code = problem.statement, problem.code
    named = [call for call in problem.calls() if code.dotted(call.func) in _SEEDS]
    if not named or statement is None or problem.is_left_out:
        return
    if not isinstance(statement, ast.Expr):
        yield refused(_TITLE, "Its result is used: seed before the compiled call instead.")
    elif code.stands_alone(statement) and code.can_be_indented(statement):
        torch, imports = code.module_name("torch")
        guarded = code.under(statement, f"if not {torch}.compiler.is_compiling():")
        yield changes("seed only when not compiled (compiled calls draw new numbers each time)", guarded, *imports)
    else:
        yield refused(_TITLE, "Another statement shares its line: give it a line of its own first.")
