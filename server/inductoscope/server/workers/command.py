"""The command line that starts a worker.

The worker runs in the user's interpreter, where this package is not installed: it is started by the path of
`bootstrap.py` and told where the parts of the `inductoscope` namespace lie.  Must not import the compiler package.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import inductoscope

WorkerCommand: TypeAlias = Callable[[int, int], list[str]]
"""Makes the command line of a worker from the two inherited descriptors: where it reads, where it writes."""


def namespace_parts() -> tuple[str, ...]:
    """The folders that make up the `inductoscope` namespace package."""
    return tuple(str(Path(part).resolve()) for part in inductoscope.__path__)


def bootstrap_path() -> Path:
    """The worker's first file.  Raises `FileNotFoundError` when the installation is incomplete."""
    for part in namespace_parts():
        path = Path(part) / "compiler" / "bootstrap.py"
        if path.is_file():
            return path
    raise FileNotFoundError("this installation of inductoscope has no compiler/bootstrap.py; install it again")


def bootstrap_command(interpreter: str) -> WorkerCommand:
    """Command lines `INTERPRETER bootstrap.py READ_FD WRITE_FD NAMESPACE_PART...`.

    Output is unbuffered, so that the last words of a crashing process are seen; the fault handler names the Python
    line at which a fatal signal came.
    """

    def command(read_fd: int, write_fd: int) -> list[str]:
        flags = ["-u", "-X", "faulthandler"]
        return [interpreter, *flags, str(bootstrap_path()), str(read_fd), str(write_fd), *namespace_parts()]

    return command
