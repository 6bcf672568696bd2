"""Whether a result still answers for the text on screen, so that nothing has to be run.

A fingerprint covers what can change a program's meaning: what its file and the files it imports mean (see `meaning`),
the comment that gives the inputs, and how it is run.  Comments, blank lines and layout do not count: the result is then
told with the lines of now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import TargetReport
from inductoscope.server import meaning
from inductoscope.server.alignment import Alignment
from inductoscope.server.positions import Text
from inductoscope.server.restating import restated
from inductoscope.server.snapshot import Result


def fingerprint(target: Target, how: Iterable[str], program: str) -> str:
    """A name for all that a run of `target` depends on, as far as it can be told without running it.

    `how` says how it is run, `program` is the name of what its files say: `meaning.program`.
    """
    what = (target.entry, target.kind.value, target.comment or "")
    return meaning.name_of((*what, *how, program))


def texts_of(result: Result, now: Callable[[str], Text | None]) -> dict[str, Text]:
    """The texts that a result is about, as they are now."""
    return {path: text for path in result.texts if (text := now(path)) is not None}


def relaid(result: Result, texts: Mapping[str, Text]) -> Result:
    """A result whose program means the same in `texts`, told with the lines that it has there."""
    changed = {path: text for path, text in texts.items() if text != result.texts.get(path)}
    if not changed:
        return result
    moves = {path: Alignment(result.texts[path], text) for path, text in changed.items() if path in result.texts}
    return replace(result, report=restated(result.report, moves), texts={**result.texts, **changed})


def mentioned(report: TargetReport) -> Iterator[tuple[str, int]]:
    """Every place that the editor would show something at."""
    for finding in report.findings:
        yield finding.file, finding.line
    for kernel in report.kernels:
        yield from ((place.file, place.line) for place in kernel.lines)
        yield from ((mapping.file, mapping.line) for mapping in kernel.line_map)
