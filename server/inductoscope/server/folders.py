"""The workspace folders, each with settings and a runner of its own.

A file outside of every folder belongs to the nameless one, whose settings are those without scope.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from inductoscope.server.ports import MakeRunner, Runner
from inductoscope.server.settings import Settings

NO_FOLDER = ""


@dataclass
class _Folder:
    settings: Settings
    runner: Runner | None = None


class Folders:
    """Settings and runners by folder path; runners are made when first needed."""

    def __init__(self, make_runner: MakeRunner) -> None:
        self._make_runner = make_runner
        self._folders: dict[str, _Folder] = {NO_FOLDER: _Folder(Settings())}

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders, without the nameless one."""
        return tuple(path for path in self._folders if path != NO_FOLDER)

    def of(self, file: str) -> str:
        """The innermost folder that a file is in."""
        holders = [folder for folder in self.paths if file == folder or file.startswith(folder.rstrip(os.sep) + os.sep)]
        return max(holders, key=len, default=NO_FOLDER)

    def settings(self, file: str) -> Settings:
        """The settings that apply to a file."""
        return self._folders[self.of(file)].settings

    def working_folder(self, file: str) -> str:
        """Where programs of that file are run: its workspace folder, else the folder that it is in."""
        return self.of(file) or str(Path(file).parent)

    def runner(self, file: str) -> Runner:
        """The runner for programs of that file."""
        path = self.of(file)
        folder = self._folders[path]
        if folder.runner is None:
            folder.runner = self._make_runner(path, folder.settings)
        return folder.runner

    def add(self, path: str) -> None:
        """A folder was added; it starts with the settings without scope."""
        self._folders.setdefault(path, _Folder(self._folders[NO_FOLDER].settings))

    async def remove(self, path: str) -> None:
        """A folder was removed."""
        folder = self._folders.pop(path, None) if path != NO_FOLDER else None
        if folder is not None and folder.runner is not None:
            await folder.runner.close()

    async def configure(self, path: str, settings: Settings) -> Settings:
        """Give a folder new settings; returns the old ones."""
        folder = self._folders.setdefault(path, _Folder(Settings()))
        old, folder.settings = folder.settings, settings
        if old.needs_new_workers(settings):
            await self._close(folder)
        return old

    async def renew(self) -> None:
        """Drop all runners, so that interpreters are looked for again."""
        for folder in self._folders.values():
            await self._close(folder)

    async def _close(self, folder: _Folder) -> None:
        runner, folder.runner = folder.runner, None
        if runner is not None:
            await runner.close()
