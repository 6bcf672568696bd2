"""The session: all mutable state of the server, changed on the event loop only.

Inputs (texts, settings, trust) are set by plain methods; what they make out of date is run again by `checking`, and
`publishing` shows what became of it.  Features get a `Snapshot`.  Knows no LSP types, and not how a worker is run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Place
from inductoscope.server import causes, meaning, runs
from inductoscope.server.background_scan import BackgroundScans
from inductoscope.server.checking import Answer, Checking
from inductoscope.server.clock import Clock
from inductoscope.server.documents import read_source
from inductoscope.server.folders import Folders
from inductoscope.server.pauses import Pauses
from inductoscope.server.ports import Editor, Follower
from inductoscope.server.positions import Text
from inductoscope.server.publishing import Publishing
from inductoscope.server.recall import Recall
from inductoscope.server.runs import Purpose
from inductoscope.server.settings import RunMode, Settings, Trust
from inductoscope.server.snapshot import Environment, FileView, Snapshot, TargetView
from inductoscope.server.state import State
from inductoscope.server.targets import Scan, scan


class Session:
    """What an editor tells and asks; see the module.  `start` must be called once the settings are known."""

    def __init__(
        self, editor: Editor, folders: Folders, clock: Clock, follower: Follower, recall: Recall | None = None
    ) -> None:
        self._folders = folders
        self._follower = follower
        self._state = State(folders, clock)
        self._publishing = Publishing(self._state, editor, follower)
        self._checking = Checking(self._state, editor, recall or Recall(None), self._publishing.soon)
        self._pauses = Pauses(clock, self._pause_is_over)
        self._scans = BackgroundScans(clock, self._scanned_late)
        self._reloads: set[str] = set()

    # What the editor tells

    def start(self) -> None:
        """The settings are known: targets may be run."""
        self._checking.started = True
        self._run_after_save(tuple(self._state.targets), causes.OPENED)
        self._publishing.soon()

    def open(self, uri: str, path: str, version: int, source: str) -> None:
        """A document was opened; it counts as saved."""
        state = self._state
        state.documents = state.documents.opened(uri, path, version, source)
        state.changed(frozenset({path}))
        state.adopt(path)
        self._scan(path)
        self._run_after_save(state.keys_of(path), causes.OPENED)

    def change(self, path: str, version: int, source: str) -> None:
        """A document has a new text."""
        state = self._state
        state.documents = state.documents.changed(path, version, source)
        state.changed(frozenset({path}))
        self._scan(path)
        if self._folders.settings(path).run is RunMode.ON_TYPE:
            took = max((state.targets[key].took_s for key in state.keys_that_depend_on(path)), default=0.0)
            self._pauses.begin(path, took)
        if path in self._reloads and read_source(path) == source:
            self._reloads.discard(path)
            self._run_after_save(tuple(state.targets), causes.on_disk([path]))

    def look(self, path: str, line: int) -> None:
        """Somebody looks at a line (1-based): the next run tells of its kernels first."""
        self._state.looked_at[path] = Place(path, line)

    def save(self, path: str) -> None:
        """A document was written to its file."""
        state = self._state
        state.documents = state.documents.saved(path)
        self._reloads.discard(path)
        self._pauses.stop(path)
        state.changed_anywhere()  # whoever saves here may have changed more than was noticed
        for key in state.keys_of(path):
            state.targets[key] = runs.to_retry(state.targets[key])
        self._run_after_save(tuple(state.targets), "saved")
        self._publishing.soon()

    def files_changed(self, paths: frozenset[str]) -> None:
        """These files were written, made or removed, perhaps by somebody else: a checkout, another editor."""
        state = self._state
        paths = state.concerning(paths)
        if not paths:
            return
        projects = frozenset(filter(self._folders.is_project_file, paths))
        parts = {key: paths & state.programs.files_of(view.target) for key, view in state.targets.items()}
        if projects:
            self._folders.forget_projects()
            for path in state.files:
                self._scan(path)
        # An editor that takes over what is on disk sends the new text and calls nothing saved.
        self._reloads |= {path for path in paths if state.differs_from_disk(path)}
        state.changed(paths)

        def cause(view: TargetView) -> str:
            part = parts.get(view.target.key, frozenset()) | (paths & state.programs.closure(view.target).keys())
            return causes.on_disk(part) if part or not projects else causes.PROJECT

        self._run_wanted(tuple(state.targets), cause)
        self._publishing.soon()

    def close(self, path: str) -> None:
        """A document was closed: its targets are no longer of interest."""
        for key in self._state.keys_of(path):
            self._checking.forget(key, "closed")
        self._pauses.stop(path)
        self._scans.stop(path)
        self._reloads.discard(path)
        self._state.close(path)
        self._publishing.soon()

    def trust(self, trust: Trust) -> None:
        """Whether code may be run has changed."""
        self._state.trust = trust
        if trust is Trust.UNTRUSTED:
            self._checking.stop("not trusted")
        else:
            self._run_after_save(tuple(self._state.targets), causes.TRUSTED)
        self._publishing.soon()

    async def configure(self, folder: str, settings: Settings) -> None:
        """A folder has new settings; what they concern is run again."""
        old = await self._folders.configure(folder, settings)
        keys = self._state.keys_under(folder)
        for key in keys:
            if _lifts_the_limit(old, settings, self._state.targets[key]):
                self._state.targets[key] = runs.to_retry(self._state.targets[key])
        self._run_after_save(keys, causes.settings(old, settings))
        self._publishing.soon()

    # What the person asks for

    def check(self, path: str | None = None, name: str | None = None, cause: str = causes.ASKED_FOR) -> None:
        """Run targets whether or not anything changed: one, those of a file, or all."""
        self._state.changed_anywhere()
        for key, view in list(self._state.targets.items()):
            if path in (None, view.target.file) and name in (None, view.target.name):
                self._checking.request(key, Purpose.CHECK, cause, Answer.NEW)

    def benchmark(self, path: str, name: str) -> None:
        """Measure a target."""
        view = self.snapshot().find(path, name)
        if view is not None:
            self._checking.request(view.target.key, Purpose.MEASURE, causes.ASKED_FOR)

    async def restart(self) -> None:
        """Drop all workers, look for interpreters again, check everything."""
        self._checking.stop("restart")
        self._state.environment = Environment()
        await self._folders.renew()
        self.check(cause=causes.RESTARTED)
        self._publishing.soon()

    # Reading

    def snapshot(self) -> Snapshot:
        """Everything as it is now."""
        return self._state.snapshot()

    async def settled(self, path: str, version: int | None = None) -> Snapshot:
        """The first snapshot, from now on, in which the document has that version and nothing of it is left to do."""
        await self._publishing.once(functools.partial(self._is_settled, path, version))
        return self.snapshot()

    async def shutdown(self) -> None:
        """End everything that runs."""
        self._follower.close()
        self._pauses.close()
        await self._scans.close()
        await self._checking.close()
        await self._folders.renew()

    # Behind these

    def _scan(self, path: str) -> None:
        text, wanted = self._state.documents.by_path[path].text, self._folders.wanted(path)
        if len(text.source) > meaning.LARGE:
            self._state.files.setdefault(path, FileView(Scan((), ()), Scan((), ()), text))
            self._scans.begin(path, text, wanted)
            self._publishing.soon()
        else:
            self._scans.stop(path)
            self._take(path, text, scan(text.source, path, wanted))

    def _take(self, path: str, text: Text, scanned: Scan) -> None:
        for key in self._state.take(path, text, scanned):
            self._checking.forget(key, "its target is gone")
        self._publishing.soon()

    def _scanned_late(self, path: str, text: Text, scanned: Scan) -> None:
        """A large document was scanned in the background; what its saving could not run is run now."""
        self._take(path, text, scanned)
        saved = self._state.documents.by_path[path].saved == text
        keys = self._state.keys_that_depend_on(path)
        self._run_after_save(
            [key for key in keys if saved or self._state.settings(key).run is RunMode.ON_TYPE], causes.OPENED
        )

    def _run_after_save(self, keys: Iterable[str], cause: str) -> None:
        self._run_wanted(keys, functools.partial(self._cause_or_edit, cause))

    def _run_wanted(self, keys: Iterable[str], cause: Callable[[TargetView], str]) -> None:
        wanted = [key for key in keys if self._state.settings(key).run is not RunMode.MANUAL]
        self._checking.request_outdated(wanted, cause)

    def _pause_is_over(self, path: str) -> None:
        wanted = [key for key in self._state.targets if self._state.settings(key).run is RunMode.ON_TYPE]
        self._checking.request_outdated(wanted, functools.partial(self._cause_or_edit, "edited"))
        self._publishing.soon()

    def _cause_or_edit(self, cause: str, view: TargetView) -> str:
        return causes.edited(self.snapshot(), view) or cause

    def _is_settled(self, path: str, version: int | None) -> bool:
        document = self._state.documents.get(path)
        reached = document is not None and (version is None or document.version >= version)
        waiting = self._pauses.is_waiting(path) or self._scans.is_at_work(path)
        # What an editor saves is heard of from the disk, too, and is no news.
        waiting = waiting or any(map(self._state.is_news, self._follower.waiting))
        return self._checking.started and reached and not self._checking.is_busy(path) and not waiting


def _lifts_the_limit(old: Settings, new: Settings, view: TargetView) -> bool:
    """Whether a run that was ended for want of time or memory has another limit now."""
    kind = view.failure.kind if view.failure is not None else None
    if kind is FailureKind.TIMEOUT:
        return old.timeout_s != new.timeout_s
    return kind is FailureKind.MEMORY and old.memory_bytes != new.memory_bytes
