"""One kernel: its configurations as facts, found in the store or compiled and kept there.

Compiling is meant for a forked process of its own (`pool`); finding is for the run's.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inductoscope.compiler.assembling import keys
from inductoscope.compiler.assembling.keys import Toolchain
from inductoscope.compiler.simgpu import Assembled, AssembleError, SimulationUnavailableError, assemble
from inductoscope.protocol import codec, kernel_store
from inductoscope.protocol.devices import Device
from inductoscope.protocol.kernel_store import KernelStore
from inductoscope.protocol.report import Artifact, ConfigFact, Remark

_Contents = dict[tuple[int, str], bytes]


@dataclass(frozen=True)
class Made:
    """What is known of a kernel.

    `stored` is the key of its artifacts.  `problem` says why the likely configuration could not be compiled, `unkept`
    why its artifacts could not be kept.
    """

    configs: tuple[ConfigFact, ...] = ()
    stored: str | None = None
    problem: str | None = None
    unkept: str | None = None


@dataclass(frozen=True)
class Maker:
    """Makes the kernels of one device; `store` is None where nothing is to be kept."""

    device: Device
    compiler: Toolchain
    store: KernelStore | None

    def found(self, source: str) -> Made | None:
        """What is kept of the kernel in `source`, if anything is."""
        key = keys.key(source, self.compiler)
        kept = self.store.facts(key) if self.store is not None and key is not None else None
        if kept is None:
            return None
        name = kernel_store.own_name(source)
        try:
            kept = json.loads(kernel_store.named(json.dumps(kept), name)) if name is not None else kept
            return Made(tuple(codec.from_json(ConfigFact, one) for one in kept["configs"]), key)
        except (codec.CodecError, KeyError, TypeError, ValueError):  # of an older version, or damaged
            return None

    def make(self, source: str) -> Made:
        """Compile the kernel in `source` and keep what it became.  Never raises for what is wrong with the kernel."""
        _keep_temporary_files_with_the_caches()
        try:
            configs = assemble(source, self.device)
        except (AssembleError, SimulationUnavailableError) as error:
            return Made(problem=str(error))
        name = kernel_store.own_name(source) or kernel_store.NAME
        contents = dict(_contents(configs, name))
        likely = next((index for index, one in enumerate(configs) if _is_usable(one)), 0)
        facts = tuple(_fact(index, one, contents, index == likely) for index, one in enumerate(configs))
        stored, unkept = self._keep(source, name, facts, contents)
        return Made(facts, stored, configs[likely].problem, unkept)

    def _keep(
        self, source: str, name: str, facts: tuple[ConfigFact, ...], contents: _Contents
    ) -> tuple[str | None, str | None]:
        """The key under which it is kept; or why it cannot be, if anybody wants it kept."""
        if self.store is None:
            return None, None
        complete = all(fact.problem is None for fact in facts)
        key = (keys.key(source, self.compiler) if complete else None) or keys.key_of_this_run(source, self.compiler)
        plain = json.loads(kernel_store.nameless(json.dumps({"configs": codec.to_json(facts)}), name))
        try:
            self.store.put(key, plain, contents)
        except OSError as error:
            return None, error.strerror or str(error)
        return key, None


def _is_usable(config: Assembled) -> bool:
    return config.rejected is None and config.problem is None


def _contents(configs: list[Assembled], name: str) -> Iterator[tuple[tuple[int, str], bytes]]:
    """The artifacts as they are kept, by configuration and stage."""
    for index, config in enumerate(configs):
        for stage, made in config.artifacts.items():
            content = made if isinstance(made, bytes) else _anonymous(made, config.file, name).encode()
            yield (index, stage), content


def _anonymous(text: str, file: str, name: str) -> str:
    """The text without the kernel's name and without the place of its temporary source file."""
    path, shown = Path(file), f"{kernel_store.NAME}.py"
    text = text.replace(file, shown).replace(path.name, shown).replace(f'directory: "{path.parent}"', 'directory: ""')
    return kernel_store.nameless(text, name)


def _fact(index: int, made: Assembled, contents: _Contents, likely: bool) -> ConfigFact:
    fits = made.occupancy
    kept = {stage: contents[index, stage] for stage in made.artifacts}
    return ConfigFact(
        blocks={block: size for block, size in made.config.items() if isinstance(size, int)},
        num_warps=made.num_warps,
        num_stages=made.num_stages,
        registers=made.registers,
        spills=made.spills,
        shared_bytes=made.shared_bytes,
        occupancy=fits.fraction if fits is not None else None,
        limited_by=fits.limited_by.value if fits is not None and fits.limited_by is not None else None,
        max_registers=made.max_registers,
        likely=likely,
        rejected=made.rejected,
        problem=made.problem,
        artifacts=tuple(
            Artifact(stage, hashlib.sha256(content).hexdigest(), len(content)) for stage, content in kept.items()
        ),
        remarks=tuple(Remark(one.text, one.line if one.file == made.file else None) for one in made.remarks),
    )


def _keep_temporary_files_with_the_caches() -> None:
    """What a process that is stopped leaves behind has to lie where the run's folder is removed."""
    folder = os.environ.get("TRITON_CACHE_DIR")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = folder
