"""The workspace folders, each with settings and a runner of its own.

A file outside of every folder belongs to the nameless one, whose settings are those without scope.  What the editor
does not set, the project's `[tool.inductoscope]` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from inductoscope.protocol.devices import UnknownDeviceError
from inductoscope.server import config
from inductoscope.server.ports import MakeRunner, Runner
from inductoscope.server.settings import Settings

NO_FOLDER = ""
PROJECT_FILE = "pyproject.toml"


@dataclass
class _Folder:
    settings: Settings
    runner: Runner | None = None


class Folders:
    """Settings and runners by folder path; runners are made when first needed.

    `on_problem` gets a sentence for each project whose own settings cannot be used.
    """

    def __init__(self, make_runner: MakeRunner, on_problem: Callable[[str], None]) -> None:
        self._make_runner = make_runner
        self._on_problem = on_problem
        self._folders: dict[str, _Folder] = {NO_FOLDER: _Folder(Settings())}
        self._projects: dict[Path, config.Config] = {}
        self._told: set[str] = set()

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders, without the nameless one."""
        return tuple(path for path in self._folders if path != NO_FOLDER)

    def of(self, file: str) -> str:
        """The innermost folder that a file is in."""
        holders = [folder for folder in self.paths if file.startswith(folder.rstrip(os.sep) + os.sep)]
        return max(holders, key=len, default=NO_FOLDER)

    def settings(self, file: str) -> Settings:
        """The settings that apply to a file."""
        settings, project = self._folders[self.of(file)].settings, self._project(file)
        try:
            return settings.over(project)
        except UnknownDeviceError as error:
            self._tell_once(f"The setting inductoscope.device should be a device ({error}); the default is used.")
            return replace(settings, device=Settings().device).over(project)

    def wanted(self, file: str) -> tuple[str, ...]:
        """The targets that the project names in a file."""
        return self._project(file).wanted(Path(file))

    def working_folder(self, file: str) -> str:
        """Where programs of that file are run: its workspace folder, else the folder that it is in."""
        return self.of(file) or str(Path(file).parent)

    def search_paths(self, file: str) -> tuple[str, ...]:
        """The folders that the project has programs import from, besides their own."""
        return self._project(file).paths

    def runner(self, file: str) -> Runner:
        """The runner for programs of that file."""
        folder = self._folders[self.of(file)]
        if folder.runner is None:
            folder.runner = self._make_runner(folder.settings)
        return folder.runner

    def add(self, path: str) -> None:
        """A folder was added; it starts with the settings without scope."""
        self._folders.setdefault(path, _Folder(self._folders[NO_FOLDER].settings))

    async def remove(self, path: str) -> None:
        """A folder was removed."""
        folder = self._folders.pop(path, None) if path != NO_FOLDER else None
        if folder is not None:
            await self._close(folder)

    async def configure(self, path: str, settings: Settings) -> Settings:
        """Give a folder new settings; returns the old ones."""
        folder = self._folders.setdefault(path, _Folder(Settings()))
        old, folder.settings = folder.settings, settings
        if old.needs_new_workers(settings):
            await self._close(folder)
        return old

    def project_files(self, files: Iterable[str]) -> frozenset[str]:
        """The files that the project settings of these files were read from."""
        return frozenset(str(path) for file in files for path in self._project(file).files)

    def is_project_file(self, path: str) -> bool:
        """Whether project settings may be read from a file, or from the folder that it is in."""
        if Path(path).name == PROJECT_FILE:
            return True
        known = {str(file) for project in self._projects.values() for file in project.files}
        return path in known or os.path.dirname(path) in known  # noqa: PTH120  # paths are texts here

    def forget_projects(self) -> None:
        """Read the projects' own settings again when next needed."""
        self._projects.clear()

    async def renew(self) -> None:
        """Drop all runners, so that interpreters are looked for again."""
        self.forget_projects()
        for folder in self._folders.values():
            await self._close(folder)

    def _project(self, file: str) -> config.Config:
        folder = Path(file).parent
        if folder not in self._projects:
            try:
                self._projects[folder] = config.nearest(folder)
            except config.ConfigError as error:
                self._projects[folder] = config.Config()
                self._tell_once(f"{error} The defaults are used.")
        return self._projects[folder]

    def _tell_once(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._on_problem(problem)

    async def _close(self, folder: _Folder) -> None:
        runner, folder.runner = folder.runner, None
        if runner is not None:
            await runner.close()
