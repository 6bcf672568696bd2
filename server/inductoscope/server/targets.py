"""What to compile in a file, found by reading it: rung `scan`.

No code is run and nothing is imported, so this works in an untrusted workspace and while the file is being edited.  The
order of precedence is that of `docs/architecture.md`: targets that the user names, the convention of a model file
(`ENTRY`, `Model`) with explicitly commented definitions beside it, else everything under `torch.compile` or a comment,
else the one `nn.Module` that the file's inputs can be for.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.input_spec import PREFIX
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Finding, Rung
from inductoscope.server.scanning import inputs_comment, syntax
from inductoscope.server.scanning.compiled import Definition, applications
from inductoscope.server.scanning.definitions import Binding, Function, Module
from inductoscope.server.scanning.syntax import Source


class InputSource(enum.Enum):
    """Where the inputs of a target come from; the values are those of `InputSet.origin`.

    That of recorded inputs says more: `recorded 14:02 from python train.py`.
    """

    COMMENT = "comment"
    EXERCISE = "exercise"
    GET_INPUT_SETS = "get_input_sets"
    GET_INPUTS = "get_inputs"
    NO_ARGUMENTS = "no arguments"
    RECORDED = "recorded"


_SHARED = (InputSource.EXERCISE, InputSource.GET_INPUT_SETS, InputSource.GET_INPUTS)
"""The functions of a module that give inputs; the first that exists counts."""


@dataclass(frozen=True)
class ScannedTarget:
    """A target and where its inputs come from, or None when nothing says so and it must not be run."""

    target: Target
    inputs: InputSource | None


@dataclass(frozen=True)
class Scan:
    """What reading a file tells."""

    targets: tuple[ScannedTarget, ...]
    findings: tuple[Finding, ...]


def scan(text: str, file: str, wanted: Collection[str] = ()) -> Scan:
    """The targets of `text`, the contents of `file`, and what is wrong with it.

    `wanted` are names that the user asks for (`Model`, `Model.forward`, `attend`); those that the module does not bind
    are left out.
    """
    source = syntax.parse(text, file)
    if isinstance(source, syntax.Unreadable):
        return Scan((), (_finding("scan-error", source.message, file, source.line, source.column, source.column + 1),))
    return _Scanner(source).scan(wanted)


@dataclass(frozen=True)
class _Candidate:
    """A target, the statement it stands at, and the function whose parameters its inputs are for."""

    target: Target
    node: ast.stmt
    function: Function | None
    commented: inputs_comment.Found | None


class _Scanner:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._module = Module(source)
        self._shared_inputs = next((origin for origin in _SHARED if origin.value in self._module.names), None)

    def scan(self, wanted: Collection[str]) -> Scan:
        asked = [*self._wanted(wanted), *self._convention()]
        chosen = sorted(_unique([*asked, *self._by_rule()]), key=lambda candidate: candidate.target.line)
        without_comment = [candidate for candidate in chosen if candidate.commented is None]
        # Inputs of the module are for one target; with several that nobody asked for it would be a guess which.
        heirs = {candidate.target.name for candidate in (without_comment if len(without_comment) == 1 else asked)}
        targets: list[ScannedTarget] = []
        findings = list(self._comment_findings())
        for candidate in chosen:
            inputs = self._inputs(candidate, heirs)
            if inputs is None and candidate in asked and _takes_nothing(candidate):
                inputs = InputSource.NO_ARGUMENTS
            targets.append(ScannedTarget(candidate.target, inputs))
            if inputs is None and candidate.commented is None:
                findings.append(self._no_inputs(candidate))
        return Scan(tuple(targets), tuple(findings))

    def _by_rule(self) -> list[_Candidate]:
        commented = list(self._commented())
        convention = list(self._convention())
        if convention:
            return [*convention, *commented]
        found = [*self._compiled(), *commented]
        return found or list(self._only_module())

    def _convention(self) -> Iterator[_Candidate]:
        entry = getattr(self._module.names.get("ENTRY"), "value", None)
        if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
            yield self._named(entry.value) or self._object(entry.value, self._module.names["ENTRY"])
        elif self._shared_inputs is not None:
            yield from self._wanted(["Model"])

    def _wanted(self, wanted: Collection[str]) -> Iterator[_Candidate]:
        for name in wanted:
            candidate = self._named(name)
            if candidate is not None:
                yield candidate

    def _commented(self) -> Iterator[_Candidate]:
        if PREFIX not in self._source.text.source:
            return
        for name, node in self._module.names.items():
            for candidate in self._all_of(name, node):
                if candidate.commented is not None:
                    yield candidate

    def _all_of(self, name: str, node: Binding) -> Iterator[_Candidate]:
        if isinstance(node, ast.ClassDef):
            yield self._class(node, "forward")
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name != "forward":
                    yield self._class(node, statement.name)
        elif isinstance(node, ast.FunctionDef):
            yield self._function(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield self._object(name, node)

    def _compiled(self) -> Iterator[_Candidate]:
        if "compile" not in self._source.text.source:  # every spelling of it, so most files are done here
            return
        for application in applications(self._module):
            subject = application.subject
            if application.name is not None and application.statement is not None:
                yield self._object(application.name, application.statement, subject)
            elif subject is not None and self._module.names.get(subject.node.name) is subject.node:
                yield self._definition(subject)

    def _only_module(self) -> Iterator[_Candidate]:
        """The `nn.Module` of the file that no other class of it is built from, if there is just one and inputs."""
        if self._shared_inputs is None:
            return
        modules = [node for node in self._module.classes() if self._module.is_module_class(node)]
        used = {
            part.id
            for node in self._module.classes()
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and part.id != node.name
        }
        roots = [node for node in modules if node.name not in used]
        if len(roots) == 1:
            yield self._class(roots[0], "forward")

    def _named(self, name: str) -> _Candidate | None:
        first, _, method = name.partition(".")
        node = self._module.names.get(first)
        if isinstance(node, ast.ClassDef):
            return self._class(node, method or "forward")
        if node is None or method:
            return None
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        if isinstance(node, ast.ImportFrom) and first[:1].isupper():
            return self._imported_class(first, node)
        return self._object(first, node)

    def _definition(self, definition: Definition) -> _Candidate:
        node = definition.node
        return (
            self._class(node, definition.method or "forward")
            if isinstance(node, ast.ClassDef)
            else self._function(node)
        )

    def _function(self, node: Function) -> _Candidate:
        target = Target(self._source.file, node.name, node.lineno, TargetKind.FUNCTION, node.name, _end(node))
        return self._with_comment(target, node, node, node)

    def _class(self, node: ast.ClassDef, method: str) -> _Candidate:
        function = self._module.method(node, method)
        own = function if function in node.body else None
        place: ast.stmt = own or node
        entry = node.name if method == "forward" else f"{node.name}.{method}"
        target = Target(
            self._source.file, f"{node.name}.{method}", place.lineno, TargetKind.MODULE_CLASS, entry, _end(place)
        )
        above = [own] if own is not None else []
        return self._with_comment(target, place, function, *([*above, node] if method == "forward" else above))

    def _imported_class(self, name: str, node: ast.stmt) -> _Candidate:
        target = Target(self._source.file, f"{name}.forward", node.lineno, TargetKind.MODULE_CLASS, name, _end(node))
        return self._with_comment(target, node, None, node)

    def _object(self, name: str, node: ast.stmt, subject: Definition | None = None) -> _Candidate:
        target = Target(self._source.file, name, node.lineno, TargetKind.OBJECT, name, _end(node))
        if subject is None:
            return self._with_comment(target, node, None, node)
        behind = self._definition(subject)
        candidate = self._with_comment(target, node, behind.function, node)
        if candidate.commented is None and behind.commented is not None:
            comment = behind.target.comment
            return replace(candidate, commented=behind.commented, target=replace(target, comment=comment))
        return candidate

    def _with_comment(self, target: Target, node: ast.stmt, function: Function | None, *places: ast.stmt) -> _Candidate:
        for place in places:
            found = inputs_comment.above(self._source, place, function if self._keeps_signature(function) else None)
            if found is not None:
                return _Candidate(replace(target, comment=found.text), node, function, found)
        return _Candidate(target, node, function, None)

    def _keeps_signature(self, function: Function | None) -> bool:
        """Whether the decorators are torch's own, which leave the parameters as they are written."""
        if function is None:
            return False
        decorators = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
        return all((self._module.dotted(node) or "").startswith("torch.") for node in decorators)

    def _inputs(self, candidate: _Candidate, heirs: Collection[str]) -> InputSource | None:
        if candidate.commented is not None:
            return InputSource.COMMENT if candidate.target.comment is not None else None
        return self._shared_inputs if candidate.target.name in heirs else None

    def _comment_findings(self) -> Iterator[Finding]:
        problems: list[inputs_comment.Problem] = []
        taken: set[int] = set()
        for candidate in self._commented():
            found = candidate.commented
            if found is not None and not taken.issuperset(found.lines):
                taken.update(found.lines)
                problems.extend(found.problems)
        problems.extend(inputs_comment.stray(self._source, taken))
        for problem in problems:
            yield _finding(
                "scan-error", problem.message, self._source.file, problem.line, problem.column, problem.end_column
            )

    def _no_inputs(self, candidate: _Candidate) -> Finding:
        target = candidate.target
        suggestion = inputs_comment.suggestion(candidate.function)
        message = (
            f"Nothing says with which inputs to call {target.name}, so it was not compiled. Add a comment above it, "
            f"such as `{suggestion}`, or a function get_inputs() to the module."
        )
        if self._shared_inputs is not None:
            message = (
                f"{self._shared_inputs.value}() could be for any of several targets, so {target.name} was not "
                f"compiled. Add a comment above it, such as `{suggestion}`, or name one target with ENTRY."
            )
        line = self._source.text.line(target.line)
        name = target.name.rsplit(".", 1)[-1]
        column = max(line.find(name), 0) if name in line else len(line) - len(line.lstrip())
        end = column + len(name) if name in line else len(line.rstrip())
        finding = _finding("no-inputs", message, target.file, target.line, column, end)
        return replace(finding, function=target.name, hints=(suggestion,))


def _unique(candidates: list[_Candidate]) -> list[_Candidate]:
    """One candidate for each name; a compiled object stands for the commented function behind it."""
    behind = {c.commented for c in candidates if c.target.kind is TargetKind.OBJECT and c.commented is not None}
    found: dict[str, _Candidate] = {}
    for candidate in candidates:
        if candidate.target.kind is not TargetKind.OBJECT and candidate.commented in behind:
            continue
        found.setdefault(candidate.target.name, candidate)
    return list(found.values())


def _takes_nothing(candidate: _Candidate) -> bool:
    """Whether the target is a function that is called without arguments."""
    is_function = candidate.target.kind is TargetKind.FUNCTION
    return is_function and candidate.function is not None and not ast.unparse(candidate.function.args)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _finding(code: str, message: str, file: str, line: int, column: int, end_column: int) -> Finding:
    return Finding(code, CODES[code].severity, file, line, column, line, end_column, message, Rung.SCAN)
