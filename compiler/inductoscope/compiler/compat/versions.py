"""The versions of torch that are supported, and in what the private parts that are used differ between them.

One `Adapter` for each minor version, chosen by the version's text, so that nothing of torch is imported here.  Names
that merely come and go are found by looking (`Point.exists`); an adapter is for what has to be *done* differently.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

Series = tuple[int, int]
"""Major and minor number of a version."""


class SkippedFrames(enum.Enum):
    """How Dynamo tells of a frame that it leaves alone."""

    CALLS = "calls add_skip_reason with the frame and the reason"
    LOGS = "only writes to its log, at level DEBUG"


@dataclass(frozen=True)
class Adapter:
    """What is particular about one minor version of torch."""

    series: Series
    skipped_frames: SkippedFrames


ADAPTERS: tuple[Adapter, ...] = (
    Adapter((2, 11), SkippedFrames.LOGS),
    Adapter((2, 12), SkippedFrames.LOGS),
    Adapter((2, 13), SkippedFrames.CALLS),
    Adapter((2, 14), SkippedFrames.CALLS),
    Adapter((2, 15), SkippedFrames.CALLS),
)
OLDEST, NEWEST = ADAPTERS[0].series, ADAPTERS[-1].series


def series_of(version: str) -> Series:
    """Major and minor number in a version such as `2.13.0+cpu`; (0, 0) when there is none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def adapter_for(version: str) -> Adapter:
    """The adapter of a version; of an unknown one, that of the nearest older version that is known."""
    series = series_of(version)
    return next((one for one in reversed(ADAPTERS) if one.series <= series), ADAPTERS[0])


def too_old(version: str) -> bool:
    """Whether this torch is older than all that are supported."""
    return series_of(version) < OLDEST


def newer_than_known(version: str) -> str | None:
    """A sentence for a torch that is newer than all that Inductoscope was run with, None for any other."""
    if series_of(version) <= NEWEST:
        return None
    return (
        f"torch {version} is newer than {text(NEWEST)}, the newest that Inductoscope was tested with; "
        "some facts may be missing"
    )


def text(series: Series) -> str:
    """`2.13`."""
    return f"{series[0]}.{series[1]}"
