"""The session's state: texts, targets and what is known of each.  Changed on the event loop only.

Plain data with the queries on it; when something is run and what is shown, others decide.
"""

from __future__ import annotations

import os
from dataclasses import replace

from inductoscope.protocol.report import Place
from inductoscope.server import recorded_inputs
from inductoscope.server.clock import Clock
from inductoscope.server.documents import Documents, read_input, read_source
from inductoscope.server.folders import Folders
from inductoscope.server.positions import Text
from inductoscope.server.programs import Programs
from inductoscope.server.settings import Settings, Trust
from inductoscope.server.shift import Shifts
from inductoscope.server.snapshot import Environment, FileView, Snapshot, TargetView
from inductoscope.server.targets import Scan
from inductoscope.server.watching import ancestors


class State:
    """Texts by path, targets by key."""

    def __init__(self, folders: Folders, clock: Clock) -> None:
        self.folders = folders
        self.clock = clock
        self.documents = Documents({})
        self.files: dict[str, FileView] = {}
        self.targets: dict[str, TargetView] = {}
        self.trust = Trust.TRUSTED
        self.environment = Environment()
        self.programs = Programs(self.read, folders)
        self.looked_at: dict[str, Place] = {}
        self._closed: dict[str, Text | None] = {}
        self._shifts = Shifts()

    def snapshot(self) -> Snapshot:
        """Everything as it is now."""
        closed = self._closed

        def text(path: str) -> Text | None:
            if path not in closed:
                source = read_source(path)
                closed[path] = None if source is None else Text(source)
            return closed[path]

        return Snapshot(
            documents=self.documents,
            files=dict(self.files),
            targets=dict(self.targets),
            settings_of=self.folders.settings,
            shift=self._shifts.between,
            trust=self.trust,
            environment=self.environment,
            now=self.clock.time(),
            closed=text,
        )

    def settings(self, key: str) -> Settings:
        """The settings that apply to a target."""
        return self.folders.settings(self.targets[key].target.file)

    def keys_of(self, path: str) -> tuple[str, ...]:
        """The targets that a file defines."""
        return tuple(key for key, view in self.targets.items() if view.target.file == path)

    def keys_under(self, folder: str) -> tuple[str, ...]:
        """The targets of a workspace folder."""
        return tuple(key for key, view in self.targets.items() if self.folders.of(view.target.file) == folder)

    def keys_that_depend_on(self, path: str) -> tuple[str, ...]:
        """The targets whose programs include a file."""
        files = self.programs.dependents([path]) | {path}
        return tuple(key for key, view in self.targets.items() if view.target.file in files)

    def read(self, path: str) -> str | None:
        """What a file says, unsaved text included; see `read_input`."""
        document = self.documents.get(path)
        return read_input(path) if document is None else document.text.source

    def differs_from_disk(self, path: str) -> bool:
        """Whether an open document says something else than its file."""
        document = self.documents.get(path)
        return document is not None and read_source(path) != document.text.source

    def is_news(self, path: str) -> bool:
        """Whether a file that was written may say something else than what is known of it here."""
        return self.documents.get(path) is None or self.differs_from_disk(path)

    def concerning(self, paths: frozenset[str]) -> frozenset[str]:
        """Those of these paths that may matter, with the files that are known in folders among them.

        A client tells of a folder that is removed, and of none of the files in it.
        """
        known = self.programs.files | self.folders.project_files(self.files) | self.documents.by_path.keys()
        folders = tuple(f"{path}{os.sep}" for path in paths & ancestors(known))
        inside = frozenset(file for file in known if file.startswith(folders)) if folders else frozenset()
        return inside.union(
            path for path in paths if path in known or path.endswith(".py") or self.folders.is_project_file(path)
        )

    def changed(self, paths: frozenset[str]) -> None:
        """These files say something else, came into being or are gone."""
        self.programs.changed(paths)
        self._closed = {path: text for path, text in self._closed.items() if path not in paths}

    def changed_anywhere(self) -> None:
        """Any file may say something else."""
        self.programs.changed_anywhere()
        self._closed = {}

    def adopt(self, path: str) -> None:
        """Earlier results saw the file of a document that is opened only now: take its text for what they saw."""
        text = self.documents.by_path[path].text
        for key, view in self.targets.items():
            self.targets[key] = view.with_text(path, text)

    def take(self, path: str, text: Text, scanned: Scan) -> tuple[str, ...]:
        """What was found in a text of an open document; returns the keys of targets that are gone, still in place.

        A text that cannot be read as Python, as often while somebody types, keeps the targets that it had.
        """
        found = recorded_inputs.fill(scanned, path, text.source)
        before = self.files.get(path)
        if before is not None and _is_broken(found):
            after = replace(before, scan=found)
        else:
            after = FileView(found, parsed=found, parsed_text=text)
        self.files[path] = after
        current = {one.target.key: one for one in after.parsed.targets}
        for key, one in current.items():
            view = self.targets.get(key)
            self.targets[key] = TargetView(one) if view is None else replace(view, scanned=one)
        return tuple(key for key in self.keys_of(path) if key not in current)

    def close(self, path: str) -> None:
        """A document is closed; its targets are gone already."""
        self.files.pop(path, None)
        self.looked_at.pop(path, None)
        self.documents = self.documents.closed(path)
        self.changed(frozenset({path}))
        self.programs.retain(view.target for view in self.targets.values())
        known = self.programs.files
        self._closed = {path: text for path, text in self._closed.items() if path in known}


def _is_broken(found: Scan) -> bool:
    """Whether a file could not be read as Python."""
    return not found.targets and any(finding.code == "scan-error" for finding in found.findings)
