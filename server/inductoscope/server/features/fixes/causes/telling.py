"""Statements that only tell something, or whose result nobody takes: printing, logging, warning, debugging, collecting.

Such a call need not be traced: `torch.compiler.is_compiling` is known to Dynamo and folds away.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused, words
from inductoscope.server.features.fixes.problem import Problem

_METHODS = frozenset(["debug", "info", "warning", "warn", "error", "exception", "critical", "log"])
_TITLE = "do this only when not compiled"
_NO_EFFECT_ON_RESULTS = words(
    "print breakpoint warnings.warn warnings.simplefilter warnings.filterwarnings sys.stdout.write",
    "sys.stderr.write sys.stdout.flush sys.stderr.flush pdb.set_trace pprint.pprint traceback.print_exc",
    "traceback.print_stack gc.collect gc.disable gc.enable time.sleep torch.save json.dump pickle.dump numpy.save",
    "torch.cuda.synchronize torch.cuda.empty_cache torch.cuda.nvtx.range_push torch.cuda.nvtx.range_pop",
    "faulthandler.dump_traceback",
)
_MOVABLE = {"print": "print", "warnings.warn": "warn"}
_LOGGERS = ("logging", "logger", "log")


def propose(problem: Problem) -> Iterator[Proposal]:
    """A guard around the statement; for a logger also to have Dynamo leave the call out everywhere."""
    statement = problem.statement
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    call, code = statement.value, problem.code
    if problem.is_left_out or not tells(problem, call):
        return
    if not code.stands_alone(statement):
        yield refused(
            f"Changes behaviour: {_TITLE}", "Another statement shares its line: give it a line of its own first."
        )
        return
    if not code.can_be_indented(statement):
        reason = "A text in it goes over several lines, which indenting would change: put the text into a name first."
        yield refused(f"Changes behaviour: {_TITLE}", reason)
        return
    torch, imports = code.module_name("torch")
    guarded = code.under(statement, f"if not {torch}.compiler.is_compiling():")
    yield changes(f"{_TITLE} (the compiled program leaves it out)", guarded, *imports)
    yield from _later(problem, call, torch)
    yield from _left_out_everywhere(problem, call, torch)


def tells(problem: Problem, call: ast.Call) -> bool:
    """Whether a call has no part in what the program computes."""
    name = problem.code.dotted(call.func)
    return name in _NO_EFFECT_ON_RESULTS or _is_logging(problem, call)


def _is_logging(problem: Problem, call: ast.Call) -> bool:
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr not in _METHODS:
        return False
    owner = called.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    known = name.lower().strip("_") in _LOGGERS
    return known or _made_by(problem, owner) in ("logging.getLogger", "logging.Logger")


def _made_by(problem: Problem, owner: ast.expr) -> str:
    """What made the module-level name `owner`."""
    binding = problem.code.module.names.get(owner.id) if isinstance(owner, ast.Name) else None
    value = getattr(binding, "value", None)
    return problem.code.dotted(value.func) if isinstance(value, ast.Call) else ""


def _later(problem: Problem, call: ast.Call, torch: str) -> Iterator[Proposal]:
    """Dynamo can move a call behind the graph whose arguments are tensors, constants and their formatting."""
    code = problem.code
    name = code.dotted(call.func)
    if problem.finding.code != "graph-break" or name not in _MOVABLE:
        return
    root = name.partition(".")[0]
    if (root != name and not code.is_imported(root)) or call.keywords or not all(map(_can_be_moved, call.args)):
        return
    at = code.at_top(f"{torch}._dynamo.config.reorderable_logging_functions.add({code.text(call.func)})")
    if at is not None:
        _, imports = code.module_name("torch")
        yield changes(f"{_MOVABLE[name]} after the compiled part has run, everywhere", at, *imports)


def _can_be_moved(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.JoinedStr():
            inner = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            return all(isinstance(part, ast.Name) for part in inner)
    return False


def _left_out_everywhere(problem: Problem, call: ast.Call, torch: str) -> Iterator[Proposal]:
    """`ignore_logging_functions`, for a function that the module level can name."""
    code = problem.code
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in code.module.names or not _is_logging(problem, call):
        return
    binding = code.module.names[root.id]
    name = code.text(call.func)
    torch, imports = code.module_name("torch")
    line = f"{torch}._dynamo.config.ignore_logging_functions.add({name})"
    known = any(code.text(item) == line for item in code.tree.body)
    if not known and binding in code.tree.body:
        at = code.at_top(line) if isinstance(binding, ast.Import | ast.ImportFrom) else code.after(binding, line)
        if at is not None:
            yield changes(f"have the compiler leave out every call of {name}", at, *imports)
