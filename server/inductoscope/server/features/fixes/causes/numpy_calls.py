"""NumPy on tensors: the torch functions of the same meaning, which stay on the device and in the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.model import Proposal, changes, refused, words
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import Values

_TITLE = "use torch instead of NumPy (types and rounding can differ)"
_RANDOM_TITLE = "draw random numbers by torch instead of NumPy (others, by torch's seed)"
_ELEMENTWISE = words(
    "abs exp log log2 log10 log1p expm1 sqrt sin cos tan sinh cosh tanh floor ceil round sign square isnan isinf",
    "isfinite logical_not zeros_like ones_like",
)
_OF_TWO = words("maximum minimum logical_and logical_or matmul")
_REDUCTIONS = words("any all sum prod mean max min argmax argmin count_nonzero")
_SAME_NAME = _ELEMENTWISE | _OF_TWO | _REDUCTIONS | words("where clip cumsum full_like stack")
_FUNCTIONS = {f"numpy.{name}": name for name in _SAME_NAME} | {
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
_MOST_ARGUMENTS = dict.fromkeys((*_ELEMENTWISE, "t", "atan", "asin", "acos", "linalg.norm"), 1) | dict.fromkeys(
    (*_OF_TWO, "pow", "atan2"), 2
)
"""Arguments by place beyond which the two libraries mean something else by them."""
_ONLY_TENSORS = _OF_TWO | {"atan2"}
"""Functions of which torch takes no number at any place."""
_OF_ONE_DIMENSION = {"max": "amax", "min": "amin"}
"""What only gives values along a dimension: torch's own gives the positions too."""
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "a_min": "min", "a_max": "max"}
_METHODS = frozenset(["any", "all", "sum", "prod", "mean", "max", "min", "argmax", "argmin"])
_WRAPPERS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor"})
_SHAPED = ("rand", "randn")
_OF_SEVERAL = ("stack", "cat")
_TRUTHS = words("isnan isinf isfinite logical_not logical_and logical_or")


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
        text = _Translation(code, problem.values, torch).expression(whole)
    except _UnknownError as error:
        yield refused(f"Changes behaviour: {_TITLE}", str(error))
        return
    place = code.parents.get(whole)
    is_random = any(code.dotted(call.func).startswith("numpy.random.") for call in _calls(whole))
    title = _RANDOM_TITLE if is_random else _TITLE
    if isinstance(place, ast.Call) and code.dotted(place.func) in _WRAPPERS and place.args == [whole]:
        if place.keywords:
            yield refused(f"Changes behaviour: {_TITLE}", "The type that is asked for would be lost.")
        else:
            yield changes(title, code.replaced(place, text), *imports)
    elif isinstance(place, ast.BinOp | ast.Compare | ast.If | ast.IfExp | ast.While | ast.Assert | ast.UnaryOp) or (
        isinstance(place, ast.Assign) and _only_tested(problem, place)
    ):
        yield changes(title, code.replaced(whole, text), *imports)
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


def _calls(node: ast.expr) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


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

    def __init__(self, code: Code, values: Values, torch: str) -> None:
        self._code = code
        self._values = values
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
            return self._function(node, _FUNCTIONS[name])
        is_copy = name in ("numpy.asarray", "numpy.array") and len(node.args) == 1 and not node.keywords
        if is_copy and self._values.is_tensor(node.args[0]):
            return self._code.text(node.args[0])
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "numpy" and not node.args:
                return self._tensor(node.func.value)
            if node.func.attr in _METHODS and isinstance(node.func.value, ast.Call):
                function = self._reduction(node, node.func.attr, own=0)
                return f"{self.expression(node.func.value)}.{function}({self._arguments(node)})"
        raise _UnknownError(f"`{self._code.text(node.func)}` has no counterpart in torch that does exactly the same.")

    def _function(self, node: ast.Call, function: str) -> str:
        text = self._code.text(node.func)
        if len(node.args) > _MOST_ARGUMENTS.get(function, len(node.args)):
            raise _UnknownError(f"`{text}` takes other arguments by place than `{self._torch}.{function}`.")
        held = node.args[0].elts if node.args and isinstance(node.args[0], ast.List | ast.Tuple) else []
        if any(map(_is_number, held)):
            raise _UnknownError(f"`{self._code.text(node.args[0])}` holds numbers, where torch takes tensors only.")
        numbers = [item for item in node.args if _is_number(item)]
        if function in ("maximum", "minimum") and len(numbers) == 1 and len(node.args) == 2 and not node.keywords:
            (tensor,) = (item for item in node.args if item is not numbers[0])
            bound = "min" if function == "maximum" else "max"  # the larger of the two is never below the number
            return f"{self._torch}.clamp({self.expression(tensor)}, {bound}={self._code.text(numbers[0])})"
        self._require_kinds(node, function, numbers)
        return f"{self._torch}.{self._reduction(node, function, own=1)}({self._arguments(node)})"

    def _require_kinds(self, node: ast.Call, function: str, numbers: list[ast.expr]) -> None:
        """Raises _UnknownError where torch takes no such arguments, or means something else by them."""
        first = node.args[0] if node.args else None
        if (numbers and first is numbers[0] and function not in (*_SHAPED, "pow")) or (
            numbers and function in _ONLY_TENSORS
        ):
            raise _UnknownError(
                f"`{self._torch}.{function}` takes no number such as `{self._code.text(numbers[0])}` there."
            )
        if any(isinstance(item, ast.List | ast.Tuple) for item in node.args) != (function in _OF_SEVERAL):
            raise _UnknownError(f"`{self._torch}.{function}` takes no such arguments as `{self._code.text(node)}`.")
        if function == "full_like" and len(numbers) != 1:
            raise _UnknownError(f"`{self._torch}.full_like` fills with a number only.")
        if function == "clip" and (len(node.args) + len(node.keywords) < 2 or len(node.args) - len(numbers) > 1):
            raise _UnknownError(f"`{self._torch}.clip` takes numbers as bounds, and at least one.")
        if function == "where" and not (len(node.args) == 3 and self._is_truth(node.args[0])):
            raise _UnknownError(f"`{self._torch}.where` takes three arguments, the first of them truth values.")

    def _is_truth(self, node: ast.expr) -> bool:
        name = self._code.dotted(node.func) if isinstance(node, ast.Call) else ""
        return name.startswith("numpy.") and name.rpartition(".")[2] in _TRUTHS

    def _reduction(self, node: ast.Call, function: str, own: int) -> str:
        """torch's name for it, by whether it goes along a dimension; `own` arguments by place come before that."""
        along = len(node.args) > own or any(item.arg in ("axis", "dim") for item in node.keywords)
        keeps = any(item.arg in ("keepdims", "keepdim") for item in node.keywords)
        if keeps and function == "count_nonzero":
            raise _UnknownError("`torch.count_nonzero` keeps no dimension.")
        if not along and (function == "cumsum" or (keeps and function != "linalg.norm")):
            raise _UnknownError(
                f"`{self._code.text(node)}` goes over all dimensions, as torch's does not: give an axis."
            )
        if function in _REDUCTIONS and len(node.args) > own + 1:
            raise _UnknownError(f"`{self._code.text(node)}` gives more by place than the axis.")
        return _OF_ONE_DIMENSION.get(function, function) if along else function

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


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)
