"""What an expression holds, as far as its text, annotations and the facts of runs tell: a tensor, a number, or neither.

A guess is never made: what is not known is `UNKNOWN`.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator

from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.facts import Facts
from inductoscope.server.features.fixes.model import words
from inductoscope.server.scanning.definitions import Function

_DEPTH = 12
"""How many steps are followed from an expression to what it is made of."""

_NUMBER_CALLS = frozenset({"int", "float", "len", "round", "math.sqrt", "math.ceil", "math.floor"})
_NUMBER_METHODS = frozenset({"item", "numel", "dim", "nelement", "ndimension", "size"})
_TENSOR_METHODS = words(
    "abs all amax amin any argmax argmin bool ceil clamp clip clone contiguous cos cumsum detach div double exp",
    "expand exp_ float flatten floor half int isfinite isinf isnan log long lt gt le ge eq ne masked_fill matmul",
    "max mean min mul neg new_zeros norm permute pow prod relu repeat reshape rsqrt sigmoid sign sin softmax sqrt",
    "square squeeze std sub sum t tanh to transpose type_as unsqueeze var view where add bmm chunk_ gather",
    "scatter logical_and logical_or logical_not cpu cuda requires_grad_ count_nonzero",
)
_NO_TENSOR = words(
    "torch.is_tensor torch.compile torch.equal torch.allclose torch.device torch.cond torch.manual_seed",
    "torch.is_grad_enabled torch.save torch.load torch.split torch.chunk torch.no_grad torch.enable_grad",
    "torch.inference_mode torch.Size torch.unbind torch.topk torch.sort torch.numel torch.Generator torch.finfo",
    "torch.iinfo torch.is_floating_point torch.unique torch.get_default_dtype torch.set_grad_enabled",
    "torch.autocast torch.meshgrid torch.dtype torch.nonzero_static",
)
_LAYERS = words(
    "Linear Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d LayerNorm RMSNorm GroupNorm Embedding Dropout ReLU GELU",
    "SiLU Tanh Sigmoid Softmax MaxPool2d AvgPool2d AdaptiveAvgPool2d Flatten Identity",
)


class Kind(enum.Enum):
    """What a value is."""

    TENSOR = "tensor"
    NUMBER = "number"
    OTHER = "other"
    UNKNOWN = "unknown"


class Values:
    """Says of expressions in a file what they hold."""

    def __init__(self, code: Code, facts: Facts) -> None:
        self._code = code
        self._facts = facts

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether it certainly is a tensor."""
        return self.kind(node) is Kind.TENSOR

    def kind(self, node: ast.expr, depth: int = _DEPTH) -> Kind:
        """What `node` holds."""
        if depth == 0:
            return Kind.UNKNOWN
        match node:
            case ast.Constant():
                number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
                return Kind.NUMBER if number else Kind.OTHER
            case ast.Name():
                return self._name(node, depth)
            case ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return self._operation(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript():
                return self._part(node, depth)
            case ast.Attribute():
                return self._attribute(node, depth)
            case ast.IfExp():
                kinds = {self.kind(node.body, depth - 1), self.kind(node.orelse, depth - 1)}
                return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN
            case ast.Tuple() | ast.List() | ast.Dict() | ast.Set() | ast.Lambda() | ast.JoinedStr() | ast.ListComp():
                return Kind.OTHER
        return Kind.UNKNOWN

    def made(self, node: ast.Name) -> ast.expr | None:
        """What a local name that is set once is set to."""
        function = self._code.function_of(node)
        bound = list(_bindings(function, node.id)) if function else []
        if function is None or len(bound) != 1 or node.id in _parameters(function):
            return None
        value = bound[0].value if isinstance(bound[0], ast.Assign | ast.AnnAssign) else None
        return value if isinstance(bound[0], ast.AnnAssign) or _is_plain(bound[0]) else None

    def _operation(self, node: ast.BinOp | ast.Compare | ast.UnaryOp, depth: int) -> Kind:
        match node:
            case ast.UnaryOp():
                return Kind.OTHER if isinstance(node.op, ast.Not) else self.kind(node.operand, depth - 1)
            case ast.Compare():
                if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
                    return Kind.OTHER
                operands: list[ast.expr] = [node.left, *node.comparators]
            case _:
                operands = [node.left, node.right]
        kinds = [self.kind(operand, depth - 1) for operand in operands]
        if Kind.TENSOR in kinds:
            return Kind.TENSOR
        if all(kind is Kind.NUMBER for kind in kinds):
            return Kind.NUMBER if isinstance(node, ast.BinOp) else Kind.OTHER
        return Kind.UNKNOWN

    def _call(self, node: ast.Call, depth: int) -> Kind:
        name = self._code.dotted(node.func)
        if name in _NUMBER_CALLS:
            return Kind.NUMBER
        if name.startswith("torch.nn.functional.") or self._makes_tensor(name):
            return Kind.TENSOR
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in ("item", "numel", "dim") and not node.args:
                return Kind.NUMBER
            if self.kind(node.func.value, depth - 1) is Kind.TENSOR:
                if node.func.attr in _NUMBER_METHODS:
                    return Kind.NUMBER
                several = node.func.attr in ("max", "min") and bool(node.args or node.keywords)
                return Kind.TENSOR if node.func.attr in _TENSOR_METHODS and not several else Kind.UNKNOWN
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                return Kind.TENSOR if self._layer(node) else Kind.UNKNOWN
        return Kind.UNKNOWN

    @staticmethod
    def _makes_tensor(name: str) -> bool:
        head, _, last = name.rpartition(".")
        return (
            head == "torch"
            and last.islower()
            and name not in _NO_TENSOR
            and not last.startswith(("is_", "set_", "get_"))
        )

    def _layer(self, call: ast.Call) -> bool:
        assert isinstance(call.func, ast.Attribute)
        for value in self._held(call, call.func.attr):
            made = self._code.dotted(value.func) if isinstance(value, ast.Call) else ""
            return made.startswith("torch.nn.") and made.rpartition(".")[2] in _LAYERS
        return False

    def _held(self, node: ast.AST, attribute: str) -> Iterator[ast.expr]:
        """What the class around `node` puts into an attribute of its objects."""
        owner = self._code.class_of(node)
        for item in ast.walk(owner) if owner else ():
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            value = getattr(item, "value", None)
            if isinstance(value, ast.expr) and any(is_own(target, attribute) for target in targets):
                yield value

    def _part(self, node: ast.Subscript, depth: int) -> Kind:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return Kind.OTHER if isinstance(node.slice, ast.Slice) else Kind.NUMBER
        return Kind.TENSOR if self.kind(node.value, depth - 1) is Kind.TENSOR else Kind.UNKNOWN

    def _attribute(self, node: ast.Attribute, depth: int) -> Kind:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._own(node)
        if self.kind(node.value, depth - 1) is Kind.TENSOR:
            return (
                Kind.TENSOR
                if node.attr in ("T", "mT", "data", "grad", "real", "imag")
                else (Kind.NUMBER if node.attr == "ndim" else Kind.OTHER)
            )
        if node.attr in ("weight", "bias") and isinstance(node.value, ast.Attribute):
            call = ast.Call(node.value, [], [])
            self._code.parents.setdefault(call, node)
            return Kind.TENSOR if is_own(node.value, node.value.attr) and self._layer(call) else Kind.UNKNOWN
        return Kind.UNKNOWN

    def _own(self, node: ast.Attribute) -> Kind:
        """An attribute of the object: a parameter or buffer of the class's own is a tensor."""
        owner = self._code.class_of(node)
        for call in (item for item in ast.walk(owner) if isinstance(item, ast.Call)) if owner else ():
            named = call.args[0] if call.args else None
            if getattr(call.func, "attr", "") in ("register_buffer", "register_parameter") and (
                isinstance(named, ast.Constant) and named.value == node.attr
            ):
                return Kind.TENSOR
        held = list(self._held(node, node.attr))
        if held and all(
            isinstance(value, ast.Call) and self._code.dotted(value.func) == "torch.nn.Parameter" for value in held
        ):
            return Kind.TENSOR
        return Kind.UNKNOWN

    def _name(self, node: ast.Name, depth: int) -> Kind:
        function = self._code.function_of(node)
        if function is None:
            return Kind.UNKNOWN
        bound = list(_bindings(function, node.id))
        kinds = {self._bound(item, node.id, depth) for item in bound}
        if node.id in _parameters(function):
            kinds.add(self._parameter(function, node.id))
        return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN

    def _bound(self, statement: ast.stmt, name: str, depth: int) -> Kind:
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        if any((line, name) in self._facts.tensors for line in lines) and not isinstance(statement, ast.For):
            return Kind.TENSOR
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.AugAssign):
            return self.kind(statement.value, depth - 1)
        plain = isinstance(statement, ast.Assign) and any(isinstance(item, ast.Name) for item in statement.targets)
        annotated = isinstance(statement, ast.AnnAssign)
        return self.kind(value, depth - 1) if (plain or annotated) and isinstance(value, ast.expr) else Kind.UNKNOWN

    def _parameter(self, function: Function, name: str) -> Kind:
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args]
        annotation = next((item.annotation for item in [*named, *arguments.kwonlyargs] if item.arg == name), None)
        if annotation is not None and self._code.dotted(annotation) in ("torch.Tensor", "Tensor"):
            return Kind.TENSOR
        owner = self._code.class_of(function)
        known = {function.name, f"{owner.name}.{function.name}"} if owner else {function.name}
        names = [item.arg for item in named][1 if owner else 0 :]
        for target, places, keywords in self._facts.arguments:
            if target in known and (name in keywords or (name in names and names.index(name) in places)):
                return Kind.TENSOR
        return Kind.UNKNOWN


def is_own(node: ast.AST | None, attribute: str) -> bool:
    """Whether it is `self.<attribute>`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and any(isinstance(item, ast.Name) for item in statement.targets)


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters, those by place first."""
    arguments = function.args
    return [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _parameters(function: Function) -> set[str]:
    return set(parameters(function))


def _bindings(function: Function, name: str) -> Iterator[ast.stmt]:
    """The statements of a function that bind a name."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and name in bound_by(node):
            yield node


def bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement binds by itself, not those that statements in it bind."""
    match statement:
        case ast.Assign():
            roots: list[ast.expr | None] = list(statement.targets)
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor():
            roots = [statement.target]
        case ast.With() | ast.AsyncWith():
            roots = [item.optional_vars for item in statement.items]
        case _:
            return set()
    parts = (node for root in roots if root is not None for node in ast.walk(root))
    return {node.id for node in parts if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
