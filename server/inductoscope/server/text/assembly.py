"""Assembled kernels: their configurations as tables, and the compiler's texts with the lines that they come from.

Where a text is no longer kept, the sentence that says so stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from inductoscope.protocol.report import ConfigFact, Kernel, Phase, Remark, TargetReport
from inductoscope.server import words
from inductoscope.server.assembly import texts
from inductoscope.server.assembly.texts import ArtifactText, NoTextError
from inductoscope.server.text.blocks import Code, gap, indented, paragraph
from inductoscope.server.text.view import ARTIFACTS, Part, View


def shown(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """What was asked for of the assembled kernels."""
    stages = [part.value for part in ARTIFACTS if part in view.parts]
    if not stages and not view.has(Part.CONFIGS):
        return
    kernels = list(_wanted(report, view))
    if not kernels:
        yield from (gap(), paragraph(_nothing(report, view), indent=2))
    for kernel in kernels:
        if view.has(Part.CONFIGS):
            yield from _configs(kernel, report, view)
        for stage in stages:
            yield from _artifact(kernel, stage, report, view)


def _wanted(report: TargetReport, view: View) -> Iterator[Kernel]:
    """Each different assembled kernel; those of backward passes only where they or their names are asked for."""
    seen: set[tuple[str, str | None]] = set()
    for kernel in report.kernels:
        asked = kernel.phase is Phase.FORWARD or view.has(Part.BACKWARD) or view.kernel is not None
        key = (kernel.name, kernel.source)
        if kernel.configs and asked and view.wants(kernel.name) and key not in seen:
            seen.add(key)
            yield kernel


def _nothing(report: TargetReport, view: View) -> str:
    there = list(dict.fromkeys(kernel.name for kernel in report.kernels if kernel.configs))
    if not there:
        return "No kernel was assembled: that takes a simulated GPU (--device sim:H200) and --rung assemble."
    if view.kernel is not None:
        return f"No assembled kernel has {view.kernel!r} in its name. There are: {', '.join(there)}."
    return f"All {words.count(len(there), 'assembled kernel')} belong to backward passes (--show backward)."


def _configs(kernel: Kernel, report: TargetReport, view: View) -> Iterator[RenderableType]:
    table = Table(title=kernel.name, title_justify="left", title_style="bold cyan", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("configuration", overflow="fold", ratio=2)
    for column in ("registers", "spills", "shared", "occupancy"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", overflow="fold", ratio=2)
    for config in kernel.configs:
        table.add_row(*map(Text, _cells(config)))
    yield from (gap(), indented(table))
    model_lines = _model_lines(kernel, report, view)
    remarks = next((config.remarks for config in kernel.configs if config.likely), ())
    yield from (paragraph(text, indent=2) for text in _remarks(remarks, model_lines))


def _remarks(remarks: Sequence[Remark], model_lines: dict[int, str]) -> Iterator[str]:
    """What Triton has to say, each thing once with all lines of the kernel that it is said of."""
    lines: dict[str, list[int]] = {}
    for remark in remarks:
        at = lines.setdefault(remark.text, [])
        at.extend([] if remark.kernel_line is None or remark.kernel_line in at else [remark.kernel_line])
    for text, at in lines.items():
        places = [_lines("kernel line", map(str, at))] if at else []
        if own := dict.fromkeys(model_lines[line] for line in at if line in model_lines):
            places.append(_lines("line", own))
        where = f" ({'; '.join(places)})" if places else ""
        yield f"Triton remarks{where}: {text}"


def _lines(noun: str, lines: Iterable[str]) -> str:
    listed = list(lines)
    return f"{noun}{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


def _cells(config: ConfigFact) -> tuple[str, ...]:
    """Configuration, registers, spills, shared memory, occupancy, and what else there is to say."""
    limited = f" ({config.limited_by})" if config.limited_by is not None else ""
    said = "likely" if config.likely and config.us is None else "fastest on the card" if config.likely else ""
    took = words.duration(config.us) if config.us is not None else ""
    return (
        words.configuration(config),
        "-" if config.registers is None else str(config.registers),
        "-" if config.spills is None else str(config.spills),
        "-" if config.shared_bytes is None else words.size(config.shared_bytes),
        "-" if config.occupancy is None else f"{config.occupancy:.0%}{limited}",
        "; ".join(filter(None, (said, took, config.rejected, config.problem))),
    )


def _artifact(kernel: Kernel, stage: str, report: TargetReport, view: View) -> Iterator[RenderableType]:
    """A text of the likely configuration."""
    yield gap()
    config = texts.likely(kernel)
    if config is None:
        yield paragraph(f"There is no {stage} of {kernel.name}.", indent=2)
        return
    yield indented(Text(f"{kernel.name}, {stage} ({words.configuration(config)})", "bold cyan"))
    try:
        found = texts.read(texts.store(), kernel, config, stage, report.assembler)
    except NoTextError as missing:
        yield paragraph(str(missing), indent=2)
        return
    yield paragraph("in the margin: your line, line of the kernel's source", "dim", 2)
    yield Code(_annotated(found, _model_lines(kernel, report, view)))


def _annotated(found: ArtifactText, model_lines: dict[int, str]) -> Text:
    """The text with your line and the kernel's line in the margin."""
    shown: list[Text] = []
    for number, line in enumerate(found.text.rstrip("\n").split("\n"), 1):
        kernel_line = found.lines.get(number)
        model_line = model_lines.get(kernel_line, "") if kernel_line is not None else ""
        margin = f"{model_line:>6} {'' if kernel_line is None else kernel_line:>4} | "
        shown.append(Text.assemble((margin, "dim"), line))
    return Text("\n").join(shown)


def _model_lines(kernel: Kernel, report: TargetReport, view: View) -> dict[int, str]:
    """Your line of each line of the kernel's source; one of another file with the file's name."""
    return {
        one.kernel_line: str(one.line) if one.file == report.file else view.place(one.file, one.line)
        for one in kernel.line_map
    }
