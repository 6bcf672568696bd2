"""How much of the shape probe fits into its time, judged by the run that has just been made.

What the machine does besides takes its share of both, so no speed is assumed.  Knows phases by name and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from inductoscope.protocol.report import PhaseTime

_OF_A_CALL = frozenset({"dynamo", "guards", "eager execution"})
"""What a call takes that captures and does not lower."""

# In calls that compile with given sizes.  One with symbolic sizes takes 1.6 (a small Llama) to 2.2 times (convolutions
# with batch norm) the CPU time of those, torch 2.13.
_SYMBOLIC = 2
_SETTLING = 1
_QUESTION = 3
"""One size that is made symbolic, and one more compilation where that does not serve the third size."""


class Extent(enum.Enum):
    """How much to try."""

    NOTHING = "nothing"
    LEADING = "leading"  # the leading dimension, whichever arguments share its size
    EVERYTHING = "everything"  # each dimension, once torch has told which of them depend on one another


def affordable(phases: Sequence[PhaseTime], seconds: float) -> Extent:
    """What comes to at least one answer within `seconds` of wall time."""
    call = sum(phase.ms for phase in phases if phase.name in _OF_A_CALL) / 1e3
    if call * (_SYMBOLIC + _SETTLING + _QUESTION) <= seconds:
        return Extent.EVERYTHING
    return Extent.LEADING if call * (_SETTLING + _QUESTION) <= seconds else Extent.NOTHING
