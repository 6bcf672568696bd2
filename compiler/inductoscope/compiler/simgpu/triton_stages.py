"""Triton's compilation stages, watched: what each stage made, also when a later one fails, and what Triton remarked.

Patches Triton for the length of a block; meant for a process of its own, since standard error belongs to the watcher.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIAGNOSTICS = "MLIR_ENABLE_DIAGNOSTICS"
"""The environment variable that makes MLIR speak."""

TEXT_STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")

PTX_VERSION_WITHOUT_PTXAS = 87
"""PTX ISA 8.7, the newest that Triton 3.6's and 3.7's LLVM know for every device of the table."""

_REMARK = re.compile(r"^(?P<file>/[^:\n]+):(?P<line>\d+):\d+: (?:remark|warning): (?P<text>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Remarked:
    """Something that Triton says about a line of a file."""

    file: str
    line: int
    text: str


@dataclass
class Watch:
    """What became of one compilation: artifacts by stage, Triton's metadata, the stage it was in last, its remarks."""

    artifacts: dict[str, str | bytes] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    stage: str | None = None
    remarks: tuple[Remarked, ...] = ()


@contextlib.contextmanager
def watched(backend: type) -> Iterator[Callable[[], contextlib.AbstractContextManager[Watch]]]:
    """Within the block, each `with compilation() as watch` follows one call of `triton.compile`.

    `backend` is Triton's compiler class for the target (`CUDABackend`).  Checked with Triton 3.6 and 3.7.
    """
    current: list[Watch] = []
    original: Any = backend.add_stages  # type: ignore[attr-defined]

    def add_stages(self: Any, stages: dict[str, Any], *rest: Any) -> None:
        original(self, stages, *rest)
        for name, stage in list(stages.items()):
            stages[name] = _recording(name, stage, current)

    @contextlib.contextmanager
    def compilation() -> Iterator[Watch]:
        watch = Watch()
        current.append(watch)
        try:
            with _remarks(watch):
                yield watch
        finally:
            current.pop()

    backend.add_stages = add_stages  # type: ignore[attr-defined]
    try:
        yield compilation
    finally:
        backend.add_stages = original  # type: ignore[attr-defined]


def _recording(name: str, stage: Callable[..., Any], current: list[Watch]) -> Callable[..., Any]:
    def run(src: Any, metadata: dict[str, Any]) -> Any:
        watch = current[-1]
        watch.stage, watch.metadata = name, metadata
        made = stage(src, metadata)
        watch.artifacts[name] = made if isinstance(made, bytes) else str(made)
        return made

    return run


@contextlib.contextmanager
def _remarks(watch: Watch) -> Iterator[None]:
    """Let MLIR speak, and hear what it says on standard error during the block; Python's own output goes there too."""
    sys.stderr.flush()
    saved, before = os.dup(2), os.environ.get(DIAGNOSTICS)
    os.environ[DIAGNOSTICS] = "remarks,warnings"
    with tempfile.TemporaryFile() as heard:
        os.dup2(heard.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            _restore(DIAGNOSTICS, before)
            heard.seek(0)
            watch.remarks = parse_remarks(heard.read().decode("utf-8", "replace"))


def parse_remarks(text: str) -> tuple[Remarked, ...]:
    """The remarks in what MLIR prints, each once."""
    found = (
        Remarked(match["file"], int(match["line"]), match["text"].removeprefix("Warning: ").strip())
        for match in _REMARK.finditer(text)
    )
    return tuple(dict.fromkeys(found))


def _restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def ptxas_problem(arch: int) -> str | None:
    """Why the ptxas that Triton would use for `sm_ARCH` cannot be run, or None where it can."""
    from triton.backends.nvidia import compiler

    try:
        compiler.get_ptxas_version(arch)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        return str(error)
    return None


def ptxas_path(arch: int) -> str | None:
    """The ptxas that Triton uses for `sm_ARCH`, or None where it finds none."""
    from triton.backends.nvidia import compiler

    try:
        return str(compiler.get_ptxas(arch).path)
    except RuntimeError:
        return None


def go_on_without_ptxas() -> None:
    """Let Triton come as far as PTX where ptxas, which it asks for the version of PTX to write, cannot be run."""
    from triton.backends.nvidia import compiler

    compiler.get_ptxas_version = lambda arch=80: "none"
    compiler.get_ptx_version_from_options = lambda options, arch: PTX_VERSION_WITHOUT_PTXAS


def build() -> tuple[int, int] | None:
    """Size and time of the installed compiler, which tell a build of one's own from another of the same version."""
    import triton

    library = Path(triton.__file__).parent / "_C" / "libtriton.so"
    return (library.stat().st_size, library.stat().st_mtime_ns) if library.exists() else None


def environment() -> dict[str, str]:
    """The environment variables that make Triton compile differently, as far as this Triton tells which they are."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}
    found: dict[str, str] = get_cache_invalidating_env_vars()
    return {name: value for name, value in found.items() if name != DIAGNOSTICS}
