"""What the program of each target consists of, and a name for it: the dependency graph in terms of the workspace.

Says which files have to be followed.  Knows targets and settings, and nothing of runs or of what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inductoscope.protocol.messages import Target
from inductoscope.server import freshness, meaning
from inductoscope.server.folders import Folders
from inductoscope.server.graph import Dependencies, Edges, Reader, as_of
from inductoscope.server.meaning import Meaning


class Programs:
    """The programs of the workspace folders."""

    def __init__(self, read: Reader, folders: Folders) -> None:
        self._folders = folders
        self._dependencies = Dependencies(read)

    def closure(self, target: Target, edges: Edges = Edges.ALL) -> dict[str, Meaning]:
        """What the target's file and all files that it reaches say, by path."""
        folders, file = self._folders, target.file
        return self._dependencies.closure(file, (folders.working_folder(file), *folders.search_paths(file)), edges)

    def meanings(self, paths: Iterable[str]) -> dict[str, Meaning]:
        """What these files say, by path; files that are not there are left out."""
        return self._dependencies.meanings(paths)

    def files_of(self, target: Target) -> frozenset[str]:
        """The files of a target's program when it was last looked at, also those that are not there any more."""
        return self._dependencies.reached(target.file)

    def dependents(self, paths: Iterable[str]) -> frozenset[str]:
        """These files and those that reach one of them."""
        return self._dependencies.dependents(paths)

    def fingerprint(self, target: Target, closure: Mapping[str, Meaning] | None = None) -> str:
        """A name for a run of the target as things are now, or as they were when `closure` was taken."""
        settings = self._folders.settings(target.file)
        program = meaning.program(self.closure(target) if closure is None else closure)
        how = (settings.device_identity, settings.rung.value, settings.probe.value, *settings.interpreter)
        return freshness.fingerprint(target, how, program)

    def learn(self, target: Target, then: Mapping[str, Meaning], files: Iterable[str]) -> dict[str, Meaning]:
        """A run that began with the closure `then` imported `files`; returns the closure that it was about."""
        self._dependencies.learn(target.file, files)
        return as_of(then, self.closure(target))

    def changed(self, paths: Iterable[str]) -> None:
        """These files say something else, came into being or are gone."""
        self._dependencies.changed(paths)

    def changed_anywhere(self) -> None:
        """Any file may say something else."""
        self._dependencies.changed_anywhere()

    def retain(self, targets: Iterable[Target]) -> None:
        """Only these are of interest any more."""
        self._dependencies.retain({target.file for target in targets})

    @property
    def files(self) -> frozenset[str]:
        """The files that targets depend on."""
        return self._dependencies.files
