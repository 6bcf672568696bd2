"""Documents of a kernel: its source, and the texts that the compiler made of each configuration.

Each has a name of its own within its target, which stays while the kernel keeps its name: `NAME.py`, `NAME.ptx` for the
likely configuration, `NAME.XBLOCK512-w8-s1.ptx` for another.  Of different kernels with one name, as several graphs
have them, the later ones carry their graph: `NAME@1_0.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import ConfigFact, Kernel, KernelLanguage, TargetReport
from inductoscope.server.assembly import texts
from inductoscope.server.assembly.line_tables import LineTable
from inductoscope.server.assembly.texts import ArtifactText, NoTextError

_SUFFIX = {KernelLanguage.TRITON: ".py", KernelLanguage.CPP: ".cpp", KernelLanguage.EXTERN: ".txt"}


@dataclass(frozen=True)
class KernelDocument:
    """A document by its name: the kernel's source, or with a configuration and a stage what became of it."""

    name: str
    kernel: Kernel
    config: ConfigFact | None = None
    stage: str | None = None

    @property
    def revision(self) -> str:
        """Something that changes whenever the text may."""
        if self.config is None:
            content = self.kernel.source or self.kernel.name
        else:
            content = " ".join([self.kernel.name, *(artifact.hash for artifact in self.config.artifacts)])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ModelLine:
    """A line of the program, as it was when it was compiled."""

    file: str
    line: int


def listed(report: TargetReport) -> tuple[KernelDocument, ...]:
    """All documents of the kernels of a report, each once."""
    found: dict[str, KernelDocument] = {}
    taken: dict[str, Kernel] = {}
    for kernel in report.kernels:
        base = kernel.name
        if taken.setdefault(base, kernel).source != kernel.source:
            base = f"{kernel.name}@{kernel.graph.replace('/', '_')}"
        for document in _of(kernel, base):
            found.setdefault(document.name, document)
    return tuple(found.values())


def find(report: TargetReport, name: str) -> KernelDocument | None:
    """The document of that name."""
    return next((document for document in listed(report) if document.name == name), None)


def of_kernel(report: TargetReport, kernel: Kernel) -> tuple[KernelDocument, ...]:
    """The documents that a person wants first: the source, and what became of it in the likely configuration."""
    return by_kernel(report).get(identity(kernel), ())


def by_kernel(report: TargetReport) -> dict[tuple[str, str | None], tuple[KernelDocument, ...]]:
    """What `of_kernel` says of each kernel, by its `identity`: for whoever asks about many."""
    found: dict[tuple[str, str | None], list[KernelDocument]] = {}
    for document in listed(report):
        if document.config is None or document.config.likely:
            found.setdefault(identity(document.kernel), []).append(document)
    return {kernel: tuple(documents) for kernel, documents in found.items()}


def identity(kernel: Kernel) -> tuple[str, str | None]:
    """What tells the texts of one kernel from those of another."""
    return kernel.name, kernel.source


def text(document: KernelDocument, report: TargetReport) -> str:
    """The document's text; a sentence where there is none.  SASS takes a moment."""
    kernel = document.kernel
    if document.config is None:
        return kernel.source or f"{kernel.name} is a library call: there is no generated source.\n"
    try:
        return _artifact(document, report).text
    except NoTextError as missing:
        return f"{missing}\n"


@dataclass(frozen=True)
class Lines:
    """Lines of a document to lines of the kernel's source and, of SASS, to lines of the PTX that it was made of."""

    kernel: LineTable
    ptx: LineTable


def lines(document: KernelDocument, report: TargetReport) -> Lines:
    """What each line of the document comes from, as far as the compiler tells."""
    if document.config is None:
        count = (document.kernel.source or "").count("\n") + 1
        return Lines({line: line for line in range(1, count + 1)}, {})
    try:
        found = _artifact(document, report)
    except NoTextError:
        return Lines({}, {})
    return Lines(found.lines, found.ptx_lines)


def model_lines(kernel: Kernel) -> dict[int, tuple[ModelLine, ...]]:
    """The program's lines that a line of the kernel's source computes."""
    found: dict[int, tuple[ModelLine, ...]] = {}
    for one in kernel.line_map:
        found[one.kernel_line] = (*found.get(one.kernel_line, ()), ModelLine(one.file, one.line))
    return found


def _of(kernel: Kernel, base: str) -> Iterator[KernelDocument]:
    yield KernelDocument(base + _SUFFIX[kernel.language], kernel)
    for config in kernel.configs:
        between = "" if config.likely else f".{_spelled(config)}"
        for stage in texts.stages(config):
            yield KernelDocument(f"{base}{between}.{stage}", kernel, config, stage)


def _spelled(config: ConfigFact) -> str:
    """`XBLOCK512-w8-s1`."""
    blocks = [f"{name}{size}" for name, size in config.blocks.items()]
    limit = [f"r{config.max_registers}"] if config.max_registers is not None else []
    return "-".join([*blocks, f"w{config.num_warps}", f"s{config.num_stages}", *limit])


def _artifact(document: KernelDocument, report: TargetReport) -> ArtifactText:
    assert document.config is not None
    assert document.stage is not None
    return texts.read(texts.store(), document.kernel, document.config, document.stage, report.assembler)
