"""What a person can ask to see of a trace.  Imports nothing heavy: the command line names these in its help."""

from __future__ import annotations

import enum


class Section(enum.Enum):
    """What can be asked for beyond the usual."""

    CALLS = "calls"
    RECOMPILES = "recompiles"
    CACHES = "caches"
    PHASES = "phases"
    KERNELS = "kernels"
    GUARDS = "guards"
    ARTIFACTS = "artifacts"
    RECORDS = "records"
    ALL = "all"


class SectionError(ValueError):
    """A section that does not exist; the message is a sentence."""


def sections(text: str) -> frozenset[Section]:
    """The sections in a list such as `calls,caches`.  Raises `SectionError`."""
    known = {section.value: section for section in Section}
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SectionError(f"--show {unknown[0]} is none of {', '.join(known)}.")
    found = frozenset(known[name] for name in names)
    return frozenset(Section) if Section.ALL in found else found
