"""Why two kernels stayed apart, in words: the scheduler's reason with its own names for things replaced."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inductoscope.protocol.report import ApartFrom, TargetReport
from inductoscope.server import words

_REASONS = (
    (
        r"intermediate nodes between node1 & node2",
        "something in between needs what the one makes and is needed by the other",
    ),
    (r"no shared data", "they share no data"),
    (r"memory deps did not match", "the one reads in another order, or other parts, than the other writes"),
    (r"nodes? numel(/rnumel)? (incompatibility|mismatch)", "they loop over different sizes"),
    (
        r"numel/rnumel mismatch \(reduce\) \((.+), (.+)\), \((.+), (.+)\)",
        r"they reduce over different sizes: \1 results of \3 elements each, \2 of \4",
    ),
    (r"numel/rnumel mismatch \(non-reduce\) \((.+), (.+)\), \((.+), (.+)\)",
     r"they loop over different sizes: \1 elements, \2 elements"),
    (r"device mismatch \((.+) vs (.+)\)", r"they run on different devices: \1, \2"),
    (r"extern kernel: .*", "a library call is fused with nothing"),
    (r"one combo, .*", "they were combined for one launch, which Inductor then wrote as several kernels"),
    (r"different graphs", "the one is in a graph inside of the other's, such as a branch"),
    (r"will create cycle", "each would have to wait for the other"),
    (r"node1 must go before node2", "the order in which they have to run does not allow it"),
)  # fmt: skip
"""Reasons of Inductor's scheduler, which calls the two `node1` and `node2`, and what they say."""


def reason(apart: ApartFrom, report: TargetReport, file: str) -> str:
    """`not fused with triton_poi_fused_add_1 (lines 34, 60): they share no data`, as read in `file`."""
    group = next((group for group in report.fusion_groups if group.id == apart.group), None)
    if group is None:
        return f"not fused with another kernel: {_plain(apart.reason)}"
    places = [(op.file, op.line) for op in group.ops if op.file is not None and op.line is not None]
    at = f" ({words.lines(places, file)})" if places else ""
    return f"not fused with {group.kernel}{at}: {_plain(apart.reason)}"


def telling_first(apart: Sequence[ApartFrom]) -> list[ApartFrom]:
    """The neighbours, those last of which there is least to tell: library calls, and kernels without common data."""
    return sorted(apart, key=lambda one: (one.reason.startswith("extern kernel"), one.reason == "no shared data"))


def _plain(text: str) -> str:
    for pattern, said in _REASONS:
        match = re.fullmatch(pattern, text)
        if match is not None:
            return match.expand(said) if match.groups() else said
    both = re.sub(r"\bnode1\b(?:'s)? (?:&|and) \bnode2\b", "the two", text)
    return re.sub(r"\bnode1\b", "the one", re.sub(r"\bnode2\b", "the other", both))
