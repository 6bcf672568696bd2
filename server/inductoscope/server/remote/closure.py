"""The files that travel: those of Inductoscope that a worker needs, and the source closure of a target.

Reads files and runs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductoscope.server import sources
from inductoscope.server.graph import Dependencies
from inductoscope.server.sources import SourceError
from inductoscope.server.workers.command import namespace_parts

_OURS = ("compiler", "protocol")


@dataclass(frozen=True)
class Parcel:
    """Files by path, and their contents by SHA-256."""

    paths: Mapping[str, str]
    contents: Mapping[str, bytes]


def parcel(files: Iterable[str]) -> Parcel:
    """These files as they are; one that cannot be read stays at home."""
    paths, contents = {}, {}
    for file in files:
        try:
            data = Path(file).read_bytes()
        except OSError:
            continue
        key = hashlib.sha256(data).hexdigest()
        paths[file], contents[key] = key, data
    return Parcel(paths, contents)


def own_files() -> Iterator[str]:
    """The sources of the worker's packages."""
    for part in namespace_parts():
        for package in _OURS:
            yield from (str(file) for file in sorted((Path(part) / package).rglob("*.py")))


def of_target(file: str, roots: Sequence[str]) -> tuple[str, ...]:
    """The file, everything that it imports from the workspace, and the `__init__.py` of its packages."""
    found = Dependencies(_text).closure(file, tuple(roots))
    return tuple(dict.fromkeys([*found, *_packages(found)]))


def _packages(files: Iterable[str]) -> Iterator[str]:
    """The `__init__.py` of each folder above a file, up to the first folder without one."""
    for file in files:
        for folder in Path(file).parents:
            init = folder / "__init__.py"
            if not init.is_file():
                break
            yield str(init)


def _text(path: str) -> str | None:
    try:
        return sources.read_text(Path(path))
    except SourceError:
        return None
