"""The files of a git revision, beside the work tree and without touching it.

`git archive` writes them into a temporary folder; neither the index nor the work tree changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from inductoscope.server.planning import CheckError


@dataclass(frozen=True)
class Revision:
    """A revision as files: `top` is the work tree of the repository, `folder` the copy, `commit` the short name."""

    name: str
    commit: str
    top: Path
    folder: Path

    def then(self, path: Path) -> Path:
        """Where a path of the work tree is in the copy.  Raises `CheckError` for one that is not in the repository."""
        path = path.resolve()
        if not path.is_relative_to(self.top):
            raise CheckError(f"{path} is not in the repository {self.top}, so it has no revision {self.name}.")
        return self.folder / path.relative_to(self.top)

    def now(self, path: str) -> str:
        """Where a path of the copy is in the work tree; any other path as it is."""
        found = Path(path)
        return str(self.top / found.relative_to(self.folder)) if found.is_relative_to(self.folder) else path


@contextlib.asynccontextmanager
async def files_of(name: str, path: Path) -> AsyncIterator[Revision]:
    """The files of revision `name` of the repository that `path` is in.  Raises `CheckError`."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    top = Path(await _git(folder, "rev-parse", "--show-toplevel")).resolve()
    commit = await _git(folder, "rev-parse", "--short", "--verify", "--end-of-options", f"{name}^{{commit}}")
    copy = Path(tempfile.mkdtemp(prefix="inductoscope-revision-")).resolve()
    try:
        archive = await _output(top, "archive", "--format=tar", commit)
        await asyncio.to_thread(_unpack, archive, copy)
        yield Revision(name, commit, top, copy)
    finally:
        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)


async def state(path: Path) -> str | None:
    """The revision that a file is at, with a `+` when its repository has changes that are in none; None without one."""
    try:
        commit = await _git(path.parent, "rev-parse", "--short", "HEAD")
        changed = await _git(path.parent, "status", "--porcelain", "--untracked-files=no")
    except CheckError:
        return None
    return f"{commit}+" if changed else commit


async def _git(folder: Path, *words: str) -> str:
    return (await _output(folder, *words)).decode(errors="replace").strip()


async def _output(folder: Path, *words: str) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *words,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CheckError(f"git cannot be run in {folder}: {error.strerror}.") from None
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    if process.returncode:
        said = errors.decode(errors="replace").strip().splitlines()
        raise CheckError(f"git {' '.join(words[:2])} failed in {folder}: {said[-1] if said else 'no reason given'}.")
    return output


def _unpack(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        if hasattr(tarfile, "data_filter"):
            files.extractall(folder, filter="data")
        else:
            files.extractall(folder)
