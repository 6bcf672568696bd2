"""What comes of a check beside its report: whether it fails, the SARIF log, and a new baseline.

Knows neither arguments nor streams; what people are told is in `Verdict.said`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inductoscope.protocol.report import Finding
from inductoscope.server import words
from inductoscope.server.check import Checked
from inductoscope.server.ci import baseline, fingerprints, sarif
from inductoscope.server.ci.baseline import BaselineError, Compared
from inductoscope.server.ci.fingerprints import Fingerprints, Read
from inductoscope.server.ci.sarif import Found, State
from inductoscope.server.gate import Gate
from inductoscope.server.paths import shown

NAMED = 20
"""New findings that are named; the rest is told by number."""


class BaselineUse(enum.Enum):
    """What is done with a baseline."""

    COMPARE = "compare"
    WRITE = "write"


@dataclass(frozen=True)
class Wanted:
    """What was asked for; without a baseline every finding counts as new."""

    gate: Gate
    baseline: Path | None = None
    use: BaselineUse = BaselineUse.COMPARE


@dataclass(frozen=True)
class Verdict:
    """All findings, those that make the check fail, and sentences for people."""

    found: tuple[Found, ...]
    stops: tuple[Finding, ...]
    said: tuple[str, ...]


def judge(wanted: Wanted, checked: Checked, read: Read, folder: Path) -> Verdict:
    """The verdict on a check; `folder` is what people are told files relative to.  Raises `BaselineError`."""
    told = ((target, wanted.gate.considered(target)) for target in checked.report.targets)
    found = [Found(finding, target.name, target.device) for target, finding in fingerprints.distinct(told)]
    if wanted.baseline is None:
        return Verdict(tuple(found), _stopped(wanted.gate, found), ())
    home = wanted.baseline.absolute().parent.resolve()  # as the files are, or a link leads away from all of them
    marks, findings = Fingerprints(read, home), [one.finding for one in found]
    files = baseline.files((*checked.files, *(finding.file for finding in findings)), home)
    if wanted.use is BaselineUse.WRITE:
        return Verdict(tuple(found), (), (_write(wanted.baseline, checked, findings, marks, files),))
    compared = baseline.compare(baseline.read(wanted.baseline), findings, marks, files)
    found = [replace(one, state=_state(number, compared)) for number, one in enumerate(found)]
    new = [one for one in found if one.state is State.NEW]
    stops = _stopped(wanted.gate, new)
    sum_up = f"{words.count(len(new), 'new finding')}, {len(compared.known)} in the baseline{_gone(compared)}"
    return Verdict(tuple(found), stops, (*_named(stops, folder), sum_up))


def sarif_text(checked: Checked, verdict: Verdict, read: Read, folder: Path) -> str:
    """The SARIF log of a check, with files relative to `folder`."""
    log = sarif.log(checked.report, verdict.found, checked.problems, Fingerprints(read, folder), folder)
    return baseline.as_json(log).decode()


def _stopped(gate: Gate, found: Iterable[Found]) -> tuple[Finding, ...]:
    return tuple(one.finding for one in found if gate.names(one.finding))


def _state(number: int, compared: Compared) -> State:
    return State.UNCHANGED if number in compared.known else State.NEW


def _write(path: Path, checked: Checked, found: Sequence[Finding], marks: Fingerprints, files: Iterable[str]) -> str:
    if checked.problems:
        raise BaselineError(f"The baseline {path} was not written, since not everything could be checked.")
    return f"{words.count(baseline.write(path, found, marks, files), 'finding')} in the baseline {path}."


def _named(stops: Sequence[Finding], folder: Path) -> Iterator[str]:
    for finding in stops[:NAMED]:
        known_by = f" {finding.id}" if finding.id else ""
        what = words.first_sentence(finding.message)
        yield f"new: {shown(finding.file, folder)}:{finding.line}: {finding.code}{known_by}: {what}"
    if len(stops) > NAMED:
        yield f"and {len(stops) - NAMED} more new findings that must not occur."


def _gone(compared: Compared) -> str:
    number = len(compared.gone)
    return f"; {words.count(number, 'entry', 'entries')} of it fit nothing any more: write it anew." if number else "."
