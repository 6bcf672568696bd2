"""Conditions as tensors: what `if`, `assert` and `while` test, with nothing read from the device."""

from __future__ import annotations

import ast

from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.model import words
from inductoscope.server.features.fixes.values import Kind, Values

_BOOLEAN = words(
    "all any isnan isinf isfinite logical_and logical_or logical_not isclose eq ne lt le gt ge",
)
DATA_DEPENDENT = ("GB0170", "GB0033", "GB0124")
"""torch's ids of breaks at a condition: on a tensor's value, by an operator that gives a bool, by reading a number."""

_SYMBOLS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_READS = frozenset({"item", "is_nonzero"})


class NoTensorError(ValueError):
    """A condition that cannot be written as a tensor; the message is a sentence for the user."""


class Conditions:
    """Writes conditions of a file as expressions that are tensors; `torch` is how the file calls it."""

    def __init__(self, code: Code, values: Values, torch: str) -> None:
        self._code = code
        self._values = values
        self._torch = torch

    def tensor(self, test: ast.expr) -> str:
        """`test` as a tensor of truth values, to stand where commas separate.  Raises NoTensorError."""
        if any(self._is_numpy(node) for node in ast.walk(test)):
            raise NoTensorError(f"`{self._code.text(test)}` is made by NumPy: write that with torch first.")
        match test:
            case ast.BoolOp():
                return self._joined(test)
            case ast.UnaryOp(op=ast.Not()):
                return f"{self._torch}.logical_not({self.tensor(test.operand)})"
            case ast.Compare():
                return self._compared(test)
            case ast.Call():
                return self._called(test)
            case ast.Name():
                self._require_tensor(test)
        return self._truth(test)

    def _require_tensor(self, name: ast.Name) -> None:
        """Raises NoTensorError for a name that was given what Python itself made of truth values."""
        made = self._values.made(name)
        if isinstance(made, ast.BoolOp | ast.Compare):
            self.tensor(made)
        elif self._values.kind(name) in (Kind.NUMBER, Kind.OTHER):
            raise NoTensorError(f"`{name.id}` is no tensor.")

    def _joined(self, test: ast.BoolOp) -> str:
        for part in test.values:
            if not self._is_tensor(part):
                raise NoTensorError(
                    f"`{self._code.text(part)}` is not known to be a tensor, and `and`/`or` stop before what they need "
                    "not look at."
                )
        name = f"{self._torch}.logical_{'and' if isinstance(test.op, ast.And) else 'or'}"
        text = self.tensor(test.values[0])
        for part in test.values[1:]:
            text = f"{name}({text}, {self.tensor(part)})"
        return text

    def _compared(self, test: ast.Compare) -> str:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in test.ops):
            raise NoTensorError(f"`{self._code.text(test)}` is no comparison of tensors.")
        operands = [test.left, *test.comparators]
        if len(test.ops) > 1:
            raise NoTensorError(f"`{self._code.text(test)}` compares several times; write it as two comparisons first.")
        if not any(self._is_tensor(operand) for operand in operands) and any(map(self._is_size, operands)):
            raise NoTensorError(f"`{self._code.text(test)}` compares sizes or numbers, not tensors.")
        left, right = (self._unread(operand) for operand in operands)
        if left is None and right is None:
            return self._code.text(test)
        first, second = (self._operand(node, text) for node, text in zip(operands, (left, right), strict=True))
        return f"{first} {_SYMBOLS[type(test.ops[0])]} {second}"

    def _called(self, test: ast.Call) -> str:
        name = self._code.dotted(test.func)
        arguments = [self._code.text(item) for item in test.args]
        if name == "bool" and len(arguments) == 1:
            return self.tensor(test.args[0])
        if name == "torch.allclose":
            inside = self._code.between(self._code.end(test.func), self._code.end(test))
            return f"{self._torch}.isclose{inside}.all()"
        if name == "torch.equal" and len(arguments) == 2:
            return f"({arguments[0]} == {arguments[1]}).all()"
        if isinstance(test.func, ast.Attribute):
            if test.func.attr == "item" and not test.args:
                return self.tensor(test.func.value)
            if test.func.attr == "is_nonzero" and not test.args:
                return f"{self._code.text(test.func.value)} != 0"
        return self._truth(test)

    def _truth(self, test: ast.expr) -> str:
        text = self._code.text(test)
        called = test.func if isinstance(test, ast.Call) else None
        if getattr(called, "attr", "") in _BOOLEAN:
            return text
        loose = not isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp)
        return f"({text}) != 0" if loose else f"{text} != 0"

    def _operand(self, node: ast.expr, text: str | None) -> str:
        if text is not None:
            return text
        loose = isinstance(node, ast.Compare | ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
        return f"({self._code.text(node)})" if loose else self._code.text(node)

    def _unread(self, node: ast.expr) -> str | None:
        """An operand without what reads it from the device (`x.sum().item()` is `x.sum()`), None where nothing does."""
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            return self._code.text(node.func.value)
        if self._code.dotted(node.func) == "float" and len(node.args) == 1 and self._values.is_tensor(node.args[0]):
            return f"({self._code.text(node.args[0])})"
        return None

    def _is_numpy(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            is_array = isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
            return is_array or self._code.dotted(node.func).startswith("numpy.")
        made = self._values.made(node) if isinstance(node, ast.Name) else None
        return made is not None and any(
            self._is_numpy(part) for part in ast.walk(made) if not isinstance(part, ast.Name)
        )

    def _is_size(self, node: ast.expr) -> bool:
        return self._values.kind(node) is Kind.NUMBER and not isinstance(node, ast.Constant)

    def _is_tensor(self, node: ast.expr) -> bool:
        if self._values.is_tensor(node):
            return True
        match node:
            case ast.UnaryOp(op=ast.Not()):
                return self._is_tensor(node.operand)
            case ast.BoolOp():
                return all(map(self._is_tensor, node.values))
            case ast.Compare():
                return any(map(self._is_tensor, [node.left, *node.comparators]))
            case ast.Call():
                name = self._code.dotted(node.func)
                reads = isinstance(node.func, ast.Attribute) and node.func.attr in _READS and not node.args
                tensors = ("torch.allclose", "torch.equal")
                inner = name in ("bool", "float") and len(node.args) == 1 and self._is_tensor(node.args[0])
                return reads or inner or name in tensors
        return False
