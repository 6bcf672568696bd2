"""The artifacts of a kernel in a report: which there are, and their texts with a table of kernel lines.

Reads the store; runs the disassembler for SASS, which takes a moment, so callers that must not wait use a thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from inductoscope.protocol.kernel_store import KernelStore, named
from inductoscope.protocol.messages import Assembling
from inductoscope.protocol.report import Assembler, ConfigFact, Kernel, Place
from inductoscope.server import machine
from inductoscope.server.assembly import disassembly, line_tables
from inductoscope.server.assembly.line_tables import LineTable

SASS = "sass"
STAGES = ("ttir", "ttgir", "llir", "ptx", SASS, "amdgcn")
"""The texts that can be shown, in the order in which they are made."""

MOST_PROCESSES = 16
"""More would wait for memory rather than for a core: each compiles in 100 MB and more of its own."""


@dataclass(frozen=True)
class ArtifactText:
    """A text, which kernel line each of its lines comes from, and for SASS also which PTX line."""

    text: str
    lines: LineTable = field(default_factory=dict)
    ptx_lines: LineTable = field(default_factory=dict)


class NoTextError(LookupError):
    """There is no such text; the message is a sentence that says why."""


def store() -> KernelStore:
    """Where this machine's user keeps what the compiler made of kernels."""
    return KernelStore(Path(platformdirs.user_cache_dir("inductoscope")) / "kernels")


def order(at_once: int, kernel: str | None = None, place: Place | None = None) -> Assembling:
    """How a worker is to assemble while `at_once` of them run: what `kernel` or `place` names comes first."""
    return Assembling(
        processes=max(1, min(machine.cores() // at_once, MOST_PROCESSES)),
        store=str(store().folder),
        kernel=kernel,
        file=place.file if place is not None else None,
        line=place.line if place is not None else None,
    )


def stages(config: ConfigFact) -> tuple[str, ...]:
    """The stages of which there is a text."""
    made = {artifact.stage for artifact in config.artifacts}
    if "cubin" in made:
        made.add(SASS)
    return tuple(stage for stage in STAGES if stage in made)


def likely(kernel: Kernel) -> ConfigFact | None:
    """The configuration that is shown when none is named."""
    return next((config for config in kernel.configs if config.likely), None)


def read(
    kept: KernelStore, kernel: Kernel, config: ConfigFact, stage: str, assembler: Assembler | None
) -> ArtifactText:
    """An artifact of a kernel.  Raises `NoTextError`."""
    if stage not in stages(config):
        raise NoTextError(_why_not(kernel, config, stage))
    if stage == SASS:
        return _sass(kept, kernel, config, assembler)
    text = kept.text(kernel.stored or "0" * 64, kernel.configs.index(config), stage, kernel.name)
    if text is None:
        raise NoTextError(_gone(kernel, stage))
    return ArtifactText(text, line_tables.of(stage, text, f"{kernel.name}.py"))


def _sass(kept: KernelStore, kernel: Kernel, config: ConfigFact, assembler: Assembler | None) -> ArtifactText:
    program = assembler.disassembler if assembler is not None else None
    if program is None:
        raise NoTextError("There is no SASS text: this installation of Triton has no nvdisasm that can be run.")
    index = kernel.configs.index(config)
    cubin = kept.artifact(kernel.stored or "0" * 64, index, "cubin")
    if cubin is None:
        raise NoTextError(_gone(kernel, SASS))
    try:
        text = disassembly.disassemble(cubin, program)
    except disassembly.DisassemblyError as error:
        raise NoTextError(f"There is no SASS text of {kernel.name}: {error}") from None
    try:
        ptx_lines = read(kept, kernel, config, "ptx", assembler).lines
    except NoTextError:
        ptx_lines = {}
    text = named(disassembly.annotated(text, ptx_lines), kernel.name)
    return ArtifactText(text, line_tables.of(SASS, text, ""), line_tables.sass_to_ptx(text))


def _why_not(kernel: Kernel, config: ConfigFact, stage: str) -> str:
    if config.problem is not None:
        return f"There is no {stage} of {kernel.name}: {config.problem}"
    there = ", ".join(stages(config))
    return f"There is no {stage} of {kernel.name}" + (f"; there is {there}." if there else ".")


def _gone(kernel: Kernel, stage: str) -> str:
    if kernel.stored is None:
        return f"The {stage} of {kernel.name} could not be kept; the report's notes say why."
    return f"The {stage} of {kernel.name} is no longer kept. Check again to have it made."
