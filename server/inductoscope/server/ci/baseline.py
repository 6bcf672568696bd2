"""`--baseline`: findings that a repository has put up with, so that only new ones fail a check.

A finding is known when an entry of the file fits, each entry for one finding: first one that is the same in everything,
then one that differs in a single thing that edits elsewhere change (the definition was renamed, the file was, or the
variables of the statement were).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from inductoscope.protocol.report import Finding
from inductoscope.server.ci import statements
from inductoscope.server.ci.fingerprints import Fingerprint, Fingerprints, relative

FORMAT = 1
_FORMAT_KEY = "inductoscope-baseline"

_KEYS: tuple[Callable[[Fingerprint], tuple[str, ...]], ...] = (
    lambda one: (one.code, one.id, one.family, one.file, one.scope, one.text),
    lambda one: (one.code, one.id, one.family, one.file, one.text),
    lambda one: (one.code, one.id, one.family, one.scope, one.text),
    lambda one: (one.code, one.id, one.family, one.file, one.scope, statements.shape(one.text)),
)
"""What has to agree, from all to the least that still means the same finding."""


class BaselineError(ValueError):
    """A baseline that cannot be read or written; the message is a sentence."""


@dataclass(frozen=True)
class Compared:
    """Positions of the findings that the baseline knows, and entries of checked files that nothing fits."""

    known: frozenset[int]
    gone: tuple[Fingerprint, ...]


def compare(
    entries: Sequence[Fingerprint], findings: Iterable[Finding], marks: Fingerprints, checked: Iterable[str]
) -> Compared:
    """Which findings are known.  `marks` and `checked` name files relative to the folder of the baseline."""
    left = dict(enumerate(entries))
    waiting = {number: marks.of(finding) for number, finding in enumerate(findings)}
    known: set[int] = set()
    for key in _KEYS:
        fitting: dict[tuple[str, ...], list[int]] = {}
        for position, entry in left.items():
            fitting.setdefault(key(entry), []).append(position)
        for number, mark in list(waiting.items()):
            positions = fitting.get(key(mark))
            if positions:
                left.pop(positions.pop(0))
                waiting.pop(number)
                known.add(number)
    looked_at = set(checked)
    return Compared(frozenset(known), tuple(entry for entry in left.values() if entry.file in looked_at))


def read(path: Path) -> tuple[Fingerprint, ...]:
    """The entries of a baseline.  Raises `BaselineError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin files with a mark
    except (OSError, UnicodeDecodeError) as error:
        hint = " Make it with --write-baseline." if isinstance(error, FileNotFoundError) else ""
        raise BaselineError(f"The baseline {path} cannot be read: {error}.{hint}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise BaselineError(f"The baseline {path} is not valid JSON: {error}.") from None
    if not isinstance(value, dict) or not isinstance(value.get("findings"), list):
        raise BaselineError(f"{path} is no baseline: it has to be an object with the list `findings`.")
    if value.get(_FORMAT_KEY) != FORMAT:
        raise BaselineError(f"The baseline {path} is of another version of Inductoscope: write it anew.")
    return tuple(_entry(item, number, path) for number, item in enumerate(value["findings"], start=1))


def _entry(item: Any, number: int, path: Path) -> Fingerprint:
    names = [one.name for one in fields(Fingerprint)]
    if not isinstance(item, dict) or not all(isinstance(item.get(name, ""), str) for name in names):
        raise BaselineError(f"Finding {number} of the baseline {path} has to be an object of strings.")
    return Fingerprint(**{name: item.get(name, "") for name in names})


def write(path: Path, findings: Iterable[Finding], marks: Fingerprints, checked: Iterable[str]) -> int:
    """Write the baseline; how many findings it holds.

    What it says of files that were not looked at stays as long as these files are there.  Raises `BaselineError`.
    """
    looked_at = set(checked)
    before = _before(path)
    kept = [one for one in before if one.file not in looked_at and (path.parent / one.file).exists()]
    found = sorted([*kept, *map(marks.of, findings)])
    value = {_FORMAT_KEY: FORMAT, "findings": [_written(one) for one in found]}
    try:
        path.write_bytes(as_json(value))
    except OSError as error:
        raise BaselineError(f"The baseline {path} cannot be written: {error}.") from None
    return len(found)


def _before(path: Path) -> tuple[Fingerprint, ...]:
    """What the file to be written says already."""
    if not path.exists():
        return ()
    try:
        return read(path)
    except BaselineError as error:
        raise BaselineError(f"{error} Nothing was written over it: remove it first.") from None


def files(paths: Iterable[str], folder: Path) -> set[str]:
    """Files as a baseline in `folder` names them."""
    return {relative(path, folder) for path in paths}


def as_json(value: Any) -> bytes:
    """JSON that people can read; of a name that is no Unicode, what is none stays an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _written(entry: Fingerprint) -> dict[str, str]:
    """Without what is empty, so that people can read it."""
    return {name: value for name, value in asdict(entry).items() if value}
