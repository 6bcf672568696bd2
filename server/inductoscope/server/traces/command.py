"""`inductoscope trace PATH`: read a trace and print it, once or as it grows.

Heavy imports stand in the functions that need them, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductoscope.server.traces.sections import Section, SectionError, sections

if TYPE_CHECKING:
    from inductoscope.server.traces.reading import Source
    from inductoscope.server.traces.reports import Detail
    from inductoscope.server.traces.run import TraceReport

OK, UNCHECKED = 0, 2
_UNSAFE = re.compile(r"[^\w.+-]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a folder that TORCH_TRACE was set to, or a log file")
    parser.add_argument("--follow", action="store_true", help="go on as the files grow; Ctrl-C ends")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    names = ", ".join(section.value for section in Section)
    parser.add_argument("--show", default="", metavar="LIST", help=f"more of: {names}")
    where = "where the sources are, if not where the trace says (default: here)"
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help=where)
    parser.add_argument("--extract", type=Path, metavar="FOLDER", help="write graphs, code and other texts as files")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    from inductoscope.server.traces import building, reading
    from inductoscope.server.traces.reading import TraceError
    from inductoscope.server.traces.reports import Asked

    try:
        shown = sections(arguments.show)
        if arguments.follow:
            from inductoscope.server.traces.following import follow

            return follow(arguments.path)
        sources = reading.read_files(reading.files(arguments.path))
    except (TraceError, SectionError) as error:
        complain(str(error))
        return UNCHECKED
    if arguments.extract is not None:
        return _extract(arguments.extract, sources)
    details = _details({*shown, Section.PHASES} if arguments.json else shown)
    report = building.build(arguments.path, sources, folder_of(arguments), Asked(details))
    if arguments.json:
        print_json(report)
    else:
        print_report(report, shown)
    for problem in report.problems:
        complain(problem)
    return OK if any(source.processes for source in sources) else UNCHECKED


def folder_of(arguments: argparse.Namespace) -> Path:
    """Where sources are looked for that are not where the trace has them."""
    return (arguments.sources or Path.cwd()).resolve()


def print_json(report: TraceReport) -> None:
    """The whole report on standard output."""
    from inductoscope.protocol import codec
    from inductoscope.server.paths import relative_files

    data = relative_files(codec.to_json(report), Path.cwd())
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream of the interpreter
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_report(report: TraceReport, shown: frozenset[Section]) -> None:
    """The report as text on standard output."""
    from inductoscope.server.text.terminal import console, source_line, write
    from inductoscope.server.text.view import View
    from inductoscope.server.traces import text

    write(console(), text.whole(report, View(frozenset(), Path.cwd(), source_line), shown))


def complain(sentence: str) -> None:
    """A sentence on standard error."""
    sys.stderr.write(f"inductoscope: {sentence}\n")


def _details(shown: Iterable[Section]) -> frozenset[Detail]:
    from inductoscope.server.traces.reports import Detail

    of = {Section.KERNELS: Detail.KERNELS, Section.GUARDS: Detail.GUARDS, Section.PHASES: Detail.PHASES}
    return frozenset(of[section] for section in shown if section in of)


def _extract(folder: Path, sources: Sequence[Source]) -> int:
    """Write every text of the trace into `folder`, named by number, compilation and kind."""
    from inductoscope.server.traces import building

    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in building.artifacts(building.processes_of(sources)):
            name = _UNSAFE.sub("_", f"{one.fact.number:05}_{one.fact.compile_id}_{one.fact.name}")[:120]
            (folder / f"{name}.txt").write_text(one.payload.text(), encoding="utf-8")
            written += 1
    except OSError as error:
        complain(f"{error.filename} cannot be written: {error.strerror}.")
        return UNCHECKED
    sys.stdout.write(f"{written} files written to {folder}\n")
    return OK
