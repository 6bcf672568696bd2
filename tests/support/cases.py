"""Cases as text: several in a file, each with files that have marks, what workers answer, and what editors then see.

    === the name of a case
    --- open model.py
    x = 1  # <mark>
    --- finish
    findings:
    - {line: "@mark", message: It breaks.}
    --- diagnostics
    1:0 warning graph-break: It breaks.

A step begins with `---`, its kind and its argument; what follows is its body.  Some steps do something, the others say
what has to be seen: their bodies are compared, or written anew when the variable UPDATE_CASES is set.  `@mark` stands
for a line.  `support.stage` knows the kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_MARK = re.compile(r"#\s*<(\w+)>")


@dataclass
class Step:
    """One step; `body` has no line end at its end."""

    kind: str
    argument: str
    body: str = ""

    @property
    def head(self) -> str:
        return f"--- {self.kind} {self.argument}".rstrip()


@dataclass
class Case:
    """A named list of steps."""

    name: str
    steps: list[Step] = field(default_factory=list)


def read(path: Path) -> list[Case]:
    """The cases of a file.  Raises `ValueError` for a text outside of any step and for a name that is used twice."""
    cases: list[Case] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.startswith("=== "):
            cases.append(Case(line[4:].strip()))
        elif line.startswith("--- ") and cases:
            kind, _, argument = line[4:].strip().partition(" ")
            cases[-1].steps.append(Step(kind, argument.strip()))
        elif cases and cases[-1].steps:
            cases[-1].steps[-1].body += line + "\n"
        elif line.strip():
            raise ValueError(f"{path}:{number}: {line!r} stands before any step")
    for case in cases:
        for step in case.steps:
            step.body = step.body.rstrip("\n")
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: a name is used twice: {sorted(name for name in names if names.count(name) > 1)[0]}")
    return cases


def written(cases: list[Case]) -> str:
    """The text of a file with these cases."""
    return "\n".join(line for case in cases for line in _lines(case))


def _lines(case: Case) -> Iterator[str]:
    yield f"=== {case.name}"
    for step in case.steps:
        yield step.head
        if step.body:
            yield step.body
    yield ""


def marks(text: str) -> dict[str, int]:
    """The marked lines (1-based) of a text by name.  Raises `ValueError` for a mark that is used twice."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        for name in _MARK.findall(line):
            if name in found:
                raise ValueError(f"the mark <{name}> is used twice")
            found[name] = number
    return found
