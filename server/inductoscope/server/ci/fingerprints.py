"""What makes a finding the same one in a later version of the program: never its line, never its wording.

A finding is known by its code, torch's id, the guard's family, the file, the definition around it and the statement
that it is about.  Several of one kind on one statement are told apart by their order.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeVar

from inductoscope.protocol.report import Finding
from inductoscope.server.ci.statements import Statements

T = TypeVar("T")

Read = Callable[[str], "str | None"]
"""The text of a file, None where it cannot be read."""


@dataclass(frozen=True, order=True)
class Fingerprint:
    """See the module.  `file` is relative to some folder, with slashes; `id` and `family` are empty for none."""

    file: str
    code: str
    id: str
    family: str
    scope: str
    text: str

    @property
    def digest(self) -> str:
        """A short name for it."""
        return hashlib.sha256("\0".join(astuple(self)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Fingerprints:
    """Makes fingerprints of findings; `folder` is what files are relative to."""

    def __init__(self, read: Read, folder: Path) -> None:
        self._read = read
        self._folder = folder
        self._files: dict[str, Statements] = {}

    def of(self, finding: Finding) -> Fingerprint:
        """The fingerprint of a finding whose lines are those of the file as it is read now."""
        if finding.file not in self._files:
            self._files[finding.file] = Statements(self._read(finding.file) or "")
        statement = self._files[finding.file].at(finding.line)
        family = finding.guard_family or ""
        file = relative(finding.file, self._folder)
        return Fingerprint(file, finding.code, finding.id or "", family, statement.scope, statement.text)

    def names(self, findings: Iterable[Finding]) -> list[str]:
        """A name for each finding that no other has: its digest, and which of those with that digest it is."""
        seen: Counter[str] = Counter()
        made = []
        for finding in findings:
            digest = self.of(finding).digest
            seen[digest] += 1
            made.append(f"{digest}:{seen[digest]}")
        return made


def distinct(told: Iterable[tuple[T, Iterable[Finding]]]) -> list[tuple[T, Finding]]:
    """The findings of several targets, each once with the first that has it: those that share code meet the same."""
    seen: Counter[tuple[object, ...]] = Counter()
    found = []
    for target, findings in told:
        here: Counter[tuple[object, ...]] = Counter()
        for finding in findings:
            key = _place(finding)
            here[key] += 1
            if here[key] > seen[key]:
                seen[key] = here[key]
                found.append((target, finding))
    return found


def relative(file: str, folder: Path) -> str:
    """A path as seen from a folder, with slashes; as it is where nothing leads there."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix() if Path(file).is_absolute() else file
    except ValueError:  # another drive
        return Path(file).as_posix()


def _place(finding: Finding) -> tuple[object, ...]:
    return (finding.code, finding.id, finding.file, finding.line, finding.column, finding.guard_family)
