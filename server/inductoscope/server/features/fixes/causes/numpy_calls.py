"""NumPy on tensors: the torch functions of the same meaning, which stay on the device and in the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem

_TITLE = "use torch instead of NumPy (types and rounding can differ)"
_SAME_NAME = (
    "abs exp log log2 log10 log1p expm1 sqrt sin cos tan sinh cosh tanh floor ceil round sign square "
    "isnan isinf isfinite maximum minimum where clip any all sum prod mean max min argmax argmin cumsum count_nonzero "
    "logical_and logical_or logical_not dot matmul outer stack zeros_like ones_like full_like flip roll sort"
)
_FUNCTIONS = {f"numpy.{name}": name for name in _SAME_NAME.split()} | {
    "numpy.concatenate": "cat",
    "numpy.absolute": "abs",
    "numpy.power": "pow",
    "numpy.arctan2": "atan2",
    "numpy.arctan": "atan",
    "numpy.arcsin": "asin",
    "numpy.arccos": "acos",
    "numpy.transpose": "t",
    "numpy.random.rand": "rand",
    "numpy.random.randn": "randn",
    "numpy.linalg.norm": "linalg.norm",
}
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "a_min": "min", "a_max": "max"}
_METHODS = frozenset(["any", "all", "sum", "prod", "mean", "max", "min", "argmax", "argmin"])
_WRAPPERS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor"})


class _UnknownError(ValueError):
    """What has no counterpart; the message is a sentence."""


def propose(problem: Problem) -> Iterator[Proposal]:
    """The whole NumPy expression in torch, where what comes out goes on as a tensor or decides a branch."""
    code = problem.code
    called = [call for call in problem.calls() if code.dotted(call.func).startswith("numpy.")]
    if not called:
        return
    whole = _whole(code, called[0])
    torch, imports = code.module_name("torch")
    try:
        text = _Translation(code, torch).expression(whole)
    except _UnknownError as error:
        yield refused(f"Changes behaviour: {_TITLE}", str(error))
        return
    place = code.parents.get(whole)
    if isinstance(place, ast.Call) and code.dotted(place.func) in _WRAPPERS and place.args == [whole]:
        if place.keywords:
            yield refused(f"Changes behaviour: {_TITLE}", "The type that is asked for would be lost.")
        else:
            yield changes(_TITLE, code.replaced(place, text), *imports)
    elif isinstance(place, ast.BinOp | ast.Compare | ast.If | ast.IfExp | ast.While | ast.Assert | ast.UnaryOp) or (
        isinstance(place, ast.Assign) and _only_tested(problem, place)
    ):
        yield changes(_TITLE, code.replaced(whole, text), *imports)
    else:
        reason = "The array goes on as a NumPy array from here: wrap it in torch.from_numpy() where it is made, first."
        yield refused(f"Changes behaviour: {_TITLE}", reason)


def _whole(code: Code, call: ast.Call) -> ast.expr:
    """The largest expression around `call` that is NumPy's."""
    whole: ast.expr = call
    for parent in code.ancestors(call):
        is_numpy = isinstance(parent, ast.Call) and code.dotted(parent.func).startswith("numpy.")
        if isinstance(parent, ast.Attribute) and parent.attr in _METHODS:
            continue
        is_method = (
            isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.value is whole
        )
        if not isinstance(parent, ast.expr) or not (is_numpy or is_method):
            break
        whole = parent
    return whole


def _only_tested(problem: Problem, statement: ast.Assign) -> bool:
    """Whether the name is only ever the condition of a branch."""
    target, function = statement.targets[0], problem.function
    if not isinstance(target, ast.Name) or function is None:
        return False
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == target.id)
    reads = [node for node in names if isinstance(node.ctx, ast.Load)]
    parents = (problem.code.parents.get(node) for node in reads)
    return all(isinstance(item, ast.If | ast.IfExp | ast.Assert | ast.Compare | ast.UnaryOp) for item in parents)


class _Translation:
    """Writes NumPy expressions with torch's functions."""

    def __init__(self, code: Code, torch: str) -> None:
        self._code = code
        self._torch = torch

    def expression(self, node: ast.expr) -> str:
        """Raises _UnknownError."""
        match node:
            case ast.Constant():
                return self._code.text(node)
            case ast.UnaryOp(operand=ast.Constant()):
                return self._code.text(node)
            case ast.Tuple() | ast.List():
                parts = ", ".join(map(self.expression, node.elts))
                tail = "," if isinstance(node, ast.Tuple) and len(node.elts) == 1 else ""
                return f"({parts}{tail})" if isinstance(node, ast.Tuple) else f"[{parts}]"
            case ast.Call():
                return self._call(node)
        raise _UnknownError(f"`{self._code.text(node)}` is not known to be a tensor: call .numpy() where it is used.")

    def _call(self, node: ast.Call) -> str:
        name = self._code.dotted(node.func)
        if name in _FUNCTIONS:
            return f"{self._torch}.{_FUNCTIONS[name]}({self._arguments(node)})"
        if name in ("numpy.asarray", "numpy.array") and len(node.args) == 1 and not node.keywords:
            return self._code.text(node.args[0])
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "numpy" and not node.args:
                return self._tensor(node.func.value)
            if node.func.attr in _METHODS and isinstance(node.func.value, ast.Call):
                return f"{self.expression(node.func.value)}.{node.func.attr}({self._arguments(node)})"
        raise _UnknownError(f"`{self._code.text(node.func)}` has no counterpart in torch that does exactly the same.")

    def _tensor(self, node: ast.expr) -> str:
        """What `.numpy()` is called on, without the move to the CPU that it needed."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cpu":
            node = node.func.value
        return self._code.text(node)

    def _arguments(self, node: ast.Call) -> str:
        keywords = []
        for item in node.keywords:
            if item.arg not in (*_KEYWORDS, *_KEYWORDS.values()):
                raise _UnknownError(f"The argument `{item.arg or '**'}` has no counterpart in torch.")
            keywords.append(f"{_KEYWORDS.get(item.arg or '', item.arg)}={self._code.text(item.value)}")
        return ", ".join([*map(self.expression, node.args), *keywords])
