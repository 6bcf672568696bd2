"""A name for an interpreter and all that is installed for it, which changes when any of that does.

The interpreter is asked once for its version and where it imports from, in a process of its own that imports nothing
else; what lies there is looked at each time.  Knows nothing of what is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from inductoscope.server import machine, meaning

logger = logging.getLogger("inductoscope.environments")

Words = tuple[str, ...]
"""The command that starts an interpreter: its path and its flags."""

_TIMEOUT_S = 20.0
_MARK = "inductoscope-environment "
_ASK = (
    "import json, os, sys;"
    f"print('\\n{_MARK}' + json.dumps([os.path.realpath(sys.executable), sys.version, sys.prefix, sys.path[1:]]))"
)
_RECORDS = (".dist-info", ".egg-info", ".egg-link", ".pth")
"""Entries of a folder of packages that come, go or change when a package does."""

_PARTS = ("torch/version.py", "triton/__init__.py")
"""Files that tell of a package that is used from where it was built."""

_VARIABLES = (
    *("TORCH", "PYTORCH", "TRITON", "INDUCTOR", "AOT", "ATEN_", "HF_", "TRANSFORMERS_", "PYTHON", "LD_", "CC", "CXX"),
    *("CUDA", "NVIDIA", "HIP", "ROCR", "OMP_", "MKL", "KMP_"),
)
"""Beginnings of the names of environment variables that torch and what it builds with look at."""


class Environments:
    """Names of interpreters' environments; to be used on the event loop."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._said: dict[tuple[Words, int], str | None] = {}

    async def name(self, words: Words) -> str | None:
        """The name of the environment of an interpreter, or None when it cannot be told."""
        try:
            key = (words, Path(words[0]).stat().st_mtime_ns)
        except OSError:
            return None
        if key not in self._said:
            said = await _ask(words)
            self._said = {key: said, **dict(list(self._said.items())[:15])}
        said = self._said[key]
        return None if said is None else await asyncio.to_thread(self._name, said)

    def _name(self, said: str) -> str:
        variables = sorted(item for item in self._environ.items() if item[0].startswith(_VARIABLES))
        parts = [said, *(f"{name}={value}" for name, value in variables)]
        for folder in json.loads(said)[3]:
            parts += _installed(folder)
        return meaning.name_of([*parts, *_machine()])


async def _ask(words: Words) -> str | None:
    """What the interpreter says of itself, as JSON."""
    process = None
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            "-c",
            _ASK,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
    except (OSError, asyncio.TimeoutError) as error:
        logger.info("the interpreter does not tell of its environment: %s error=%s", words[0], error)
        return None
    finally:
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    lines = [line for line in output.decode(errors="replace").splitlines() if line.startswith(_MARK)]
    return lines[-1].removeprefix(_MARK) if lines and process.returncode == 0 else None


def _installed(folder: str) -> Iterator[str]:
    """The records of packages in a folder, each with the time of its last change."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = sorted(entry.name for entry in entries if entry.name.endswith(_RECORDS))
        for name in (*found, *_PARTS):
            with contextlib.suppress(OSError):
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118  # hundreds of them each time
                yield f"{folder} {name} {status.st_mtime_ns} {status.st_size}"


def _machine() -> Iterator[str]:
    """What code is generated for where nothing else is asked for: the processor and the driver of the GPU."""
    yield f"{sys.platform} {platform.machine()} {machine.cores()}"
    for path in ("/proc/driver/nvidia/version", "/proc/cpuinfo"):
        with contextlib.suppress(OSError, ValueError):
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            yield next((line for line in lines if line.startswith(("flags", "Features", "NVRM"))), "")
    with contextlib.suppress(OSError):
        yield " ".join(sorted(os.listdir("/proc/driver/nvidia/gpus")))  # noqa: PTH208  # names are all that is needed
