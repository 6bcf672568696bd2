"""The session: all mutable state of the server, changed on the event loop only.

Inputs (texts, settings, trust) are set by plain methods; targets are run through the scheduler and their answers are
kept with the texts that they were about.  After any change one coalesced flush shows what is new: diagnostics, lenses,
status.  Features get a `Snapshot`.  Knows no LSP types and nothing of how a worker is run.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from inductoscope.protocol import messages
from inductoscope.protocol.devices import DeviceKind
from inductoscope.protocol.messages import Message
from inductoscope.protocol.report import Place, Rung
from inductoscope.server import freshness, runs, shift
from inductoscope.server.assembly import texts
from inductoscope.server.clock import Clock, Timer
from inductoscope.server.display import Display
from inductoscope.server.documents import Documents, read_source
from inductoscope.server.folders import Folders
from inductoscope.server.ports import Editor, Follower, Progress
from inductoscope.server.programs import Programs
from inductoscope.server.runs import Plan, Purpose
from inductoscope.server.scheduler import Job, Scheduler
from inductoscope.server.settings import RunMode, Settings, Trust
from inductoscope.server.snapshot import Activity, Environment, FileView, Snapshot, TargetView
from inductoscope.server.targets import Scan, scan
from inductoscope.server.watching import PROJECT_FILE
from inductoscope.server.workers.run import RunOutcome, RunRequest

logger = logging.getLogger("inductoscope.session")

Key: TypeAlias = "tuple[str, Purpose]"
"""What a job is for: a target's key and why it is run."""

PAUSE_S = (0.3, 3.0)
"""Bounds of the pause in typing after which `onType` runs a target; in between, half of what the last run took."""


class Session:
    """Owns the state; see the module.  `start` must be called once the settings are known."""

    def __init__(self, editor: Editor, folders: Folders, clock: Clock, follower: Follower) -> None:
        self._editor = editor
        self._follower = follower
        self._folders = folders
        self._clock = clock
        self._scheduler: Scheduler[Key] = Scheduler(self._work, self._job_changed)
        self._started = False
        self._documents = Documents({})
        self._files: dict[str, FileView] = {}
        self._targets: dict[str, TargetView] = {}
        self._trust = Trust.TRUSTED
        self._environment = Environment()
        self._programs = Programs(self._read, folders)
        self._reloads: set[str] = set()
        self._plans: dict[Key, Plan] = {}
        self._timers: dict[str, Timer] = {}
        self._last_run_s = 0.0
        self._looked_at: dict[str, Place] = {}
        self._shift = functools.lru_cache(maxsize=256)(shift.between)
        self._display = Display(editor)
        self._flush_due = False
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    # What the editor tells

    def start(self) -> None:
        """The settings are known: targets may be run."""
        self._started = True
        self._run_after_save(tuple(self._targets), "opened")
        self._flush_soon()

    def open(self, uri: str, path: str, version: int, source: str) -> None:
        """A document was opened; it counts as saved."""
        self._documents = self._documents.opened(uri, path, version, source)
        self._programs.changed([path])
        self._adopt(path)
        self._scan(path)
        self._run_after_save(self._keys_of(path), "opened")

    def change(self, path: str, version: int, source: str) -> None:
        """A document has a new text."""
        self._documents = self._documents.changed(path, version, source)
        self._programs.changed([path])
        self._scan(path)
        if self._folders.settings(path).run is RunMode.ON_TYPE:
            self._run_after_pause(path)
        if path in self._reloads and read_source(path) == source:
            self._reloads.discard(path)
            self._run_after_save(tuple(self._targets), f"reloaded {path}")

    def look(self, path: str, line: int) -> None:
        """Somebody looks at a line (1-based): the next run tells of its kernels first."""
        self._looked_at[path] = Place(path, line)

    def save(self, path: str) -> None:
        """A document was written to its file."""
        self._documents = self._documents.saved(path)
        self._reloads.discard(path)
        self._programs.changed_anywhere()  # whoever saves here may have changed more than was noticed
        for key in self._keys_of(path):
            self._targets[key] = runs.to_retry(self._targets[key])
        self._run_after_save(tuple(self._targets), f"saved {path}")

    def files_changed(self, paths: frozenset[str]) -> None:
        """These files were written, made or removed, perhaps by somebody else: a checkout, another editor."""
        if any(Path(path).name == PROJECT_FILE for path in paths):
            self._folders.forget_projects()
            for path in self._files:
                self._scan(path)
        # An editor that takes over what is on disk sends the new text and calls nothing saved.
        self._reloads |= {path for path in paths if self._differs_from_disk(path)}
        self._programs.changed(paths)
        first, *others = sorted(paths) or ["nothing"]
        self._run_after_save(tuple(self._targets), f"changed outside: {first} and {len(others)} more")
        self._flush_soon()

    def close(self, path: str) -> None:
        """A document was closed: its targets are no longer of interest."""
        for key in self._keys_of(path):
            self._forget(key, "closed")
        self._stop_timer(path)
        self._files.pop(path, None)
        self._documents = self._documents.closed(path)
        self._reloads.discard(path)
        self._programs.changed([path])
        self._programs.retain(view.target for view in self._targets.values())
        self._flush_soon()

    def trust(self, trust: Trust) -> None:
        """Whether code may be run has changed."""
        self._trust = trust
        if trust is Trust.UNTRUSTED:
            for key in self._scheduler.keys:
                self._scheduler.cancel(key, "not trusted")
        else:
            self._run_after_save(tuple(self._targets), "trusted")
        self._flush_soon()

    async def configure(self, folder: str, settings: Settings) -> None:
        """A folder has new settings; what they make out of date is run again."""
        old = await self._folders.configure(folder, settings)
        if old.needs_new_runs(settings):
            self._run_after_save(self._targets_under(folder), "new settings")
        self._flush_soon()

    # What the person asks for

    def check(self, path: str | None = None, name: str | None = None) -> None:
        """Run targets whether or not anything changed: one, those of a file, or all."""
        self._programs.changed_anywhere()
        for key, view in list(self._targets.items()):
            if path in (None, view.target.file) and name in (None, view.target.name):
                self._request(key, Purpose.CHECK, "asked for")

    def benchmark(self, path: str, name: str) -> None:
        """Measure a target."""
        for view in self.snapshot().targets_in(path):
            if view.target.name == name:
                self._request(view.target.key, Purpose.MEASURE, "asked for")

    async def restart(self) -> None:
        """Drop all workers, look for interpreters again, check everything."""
        for key in self._scheduler.keys:
            self._scheduler.cancel(key, "restart")
        self._environment = Environment()
        await self._folders.renew()
        self.check()
        self._flush_soon()

    # Reading

    def snapshot(self) -> Snapshot:
        """Everything as it is now."""
        return Snapshot(
            documents=self._documents,
            files=dict(self._files),
            targets=dict(self._targets),
            settings_of=self._folders.settings,
            shift=self._shift,
            trust=self._trust,
            environment=self._environment,
            now=self._clock.time(),
        )

    async def settled(self, path: str, version: int | None = None) -> Snapshot:
        """The first snapshot, from now on, in which the document has that version and nothing of it is left to do."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((functools.partial(self._is_settled, path, version), done))
        self._flush_soon()
        await done
        return self.snapshot()

    async def shutdown(self) -> None:
        """End everything that runs."""
        self._follower.close()
        for path in list(self._timers):
            self._stop_timer(path)
        await self._scheduler.close()
        await self._folders.renew()

    # Targets

    def _scan(self, path: str) -> None:
        document = self._documents.by_path[path]
        found = scan(document.text.source, path, self._folders.wanted(path))
        before = self._files.get(path)
        if before is not None and _is_broken(found):
            after = replace(before, scan=found)
        else:
            after = FileView(found, parsed=found, parsed_text=document.text)
        self._files[path] = after
        current = {scanned.target.key: scanned for scanned in after.parsed.targets}
        for key in self._keys_of(path):
            if key not in current:
                self._forget(key, "its target is gone")
        for key, scanned in current.items():
            view = self._targets.get(key)
            self._targets[key] = TargetView(scanned) if view is None else replace(view, scanned=scanned)
        self._flush_soon()

    def _adopt(self, path: str) -> None:
        """Earlier results saw the file of a document that is opened only now: take its text for what they saw."""
        text = self._documents.by_path[path].text
        for key, view in self._targets.items():
            self._targets[key] = view.with_text(path, text)

    def _keys_of(self, path: str) -> tuple[str, ...]:
        return tuple(key for key, view in self._targets.items() if view.target.file == path)

    def _targets_under(self, folder: str) -> tuple[str, ...]:
        return tuple(key for key, view in self._targets.items() if self._folders.of(view.target.file) == folder)

    def _forget(self, key: str, cause: str) -> None:
        for purpose in Purpose:
            self._scheduler.cancel((key, purpose), cause)
        self._targets.pop(key, None)

    # Running

    def _run_after_save(self, keys: Iterable[str], cause: str) -> None:
        wanted = (key for key in keys if self._settings(key).run is not RunMode.MANUAL)
        self._run_outdated(wanted, cause)

    def _run_after_pause(self, path: str) -> None:
        self._stop_timer(path)
        low, high = PAUSE_S
        pause = min(max(low, self._last_run_s / 2), high)
        self._timers[path] = self._clock.call_later(pause, functools.partial(self._pause_is_over, path))

    def _pause_is_over(self, path: str) -> None:
        self._stop_timer(path)
        wanted = [key for key in self._targets if self._settings(key).run is RunMode.ON_TYPE]
        self._run_outdated(wanted, f"edited {path}")
        self._flush_soon()

    def _stop_timer(self, path: str) -> None:
        timer = self._timers.pop(path, None)
        if timer is not None:
            timer.cancel()

    def _run_outdated(self, keys: Iterable[str], cause: str) -> None:
        """Run those targets whose last answer, or the one that is being made, is about another program."""
        snapshot = self.snapshot()
        for key in keys:
            view = self._targets[key]
            fingerprint = self._programs.fingerprint(view.target)
            plan = self._plans.get((key, Purpose.CHECK))
            on_its_way = plan is not None and plan.fingerprint == fingerprint
            if not on_its_way and not freshness.still_answers(snapshot, view, fingerprint):
                self._request(key, Purpose.CHECK, cause)

    def _request(self, key: str, purpose: Purpose, cause: str) -> None:
        if self._started and self._trust is Trust.TRUSTED and self._targets[key].scanned.inputs is not None:
            self._scheduler.request((key, purpose), cause)

    def _settings(self, key: str) -> Settings:
        return self._folders.settings(self._targets[key].target.file)

    def _differs_from_disk(self, path: str) -> bool:
        document = self._documents.get(path)
        return document is not None and read_source(path) != document.text.source

    def _read(self, path: str) -> str | None:
        document = self._documents.get(path)
        return read_source(path) if document is None else document.text.source

    async def _work(self, job: Job[Key]) -> None:
        key, purpose = job.key
        plan = self._plan(job)
        self._plans[job.key] = plan
        cancel = functools.partial(self._scheduler.cancel, job.key, "cancelled by the person")
        progress = self._editor.progress(f"{purpose.title} {plan.request.target.name}", cancel)
        begun = self._clock.time()
        ending = "cancelled"
        try:
            runner = self._folders.runner(plan.request.target.file)
            outcome = await runner.run(plan.request, functools.partial(self._heard, key, plan, progress))
            self._last_run_s = self._clock.time() - begun
            self._environment = runs.learned(self._environment, outcome)
            plan = self._completed(plan, outcome)
            self._targets[key] = runs.finished(self._targets[key], plan, outcome, self._clock.time())
            ending = outcome.report.status.value
        finally:
            self._plans.pop(job.key, None)
            if key in self._targets:
                self._targets[key] = runs.over(self._targets[key])
            progress.end(ending)
            self._flush_soon()

    def _completed(self, plan: Plan, outcome: RunOutcome) -> Plan:
        """The plan of a run that has told which files it imported, which are part of what its answer is about."""
        if not outcome.files:
            return plan
        closure = self._programs.learn(plan.request.target, plan.closure, outcome.files)
        return replace(plan, closure=closure, fingerprint=self._programs.fingerprint(plan.request.target, closure))

    def _plan(self, job: Job[Key]) -> Plan:
        key, purpose = job.key
        target, settings = self._targets[key].target, self._settings(key)
        request = RunRequest(
            target=target,
            device=_real(settings.device) if purpose is Purpose.MEASURE else settings.device,
            own=settings.own if purpose is Purpose.CHECK else None,
            rung=Rung.MEASURE if purpose is Purpose.MEASURE else settings.rung,
            overlays=self._documents.overlays(),
            timeout_s=settings.timeout_s,
            memory_bytes=settings.memory_bytes,
            cwd=self._folders.working_folder(target.file),
            search_paths=self._folders.search_paths(target.file),
            assembling=texts.order(at_once=1, place=self._looked_at.get(target.file)),
            probe_seconds=settings.probe.seconds,
        )
        closure = self._programs.closure(target)
        return Plan(
            request=request,
            purpose=purpose,
            generation=job.generation,
            version=self._documents.by_path[target.file].version,
            texts={path: document.text for path, document in self._documents.by_path.items()},
            closure=closure,
            fingerprint=self._programs.fingerprint(target, closure),
        )

    def _heard(self, key: str, plan: Plan, progress: Progress, message: Message) -> None:
        job = self._scheduler.running((key, plan.purpose))
        if job is None or job.generation != plan.generation:
            return  # it was cancelled, and its process has not noticed yet
        self._targets[key] = runs.heard(self._targets[key], plan, message, self._clock.time())
        if isinstance(message, messages.Progress):
            progress.report(message.text)
        self._flush_soon()

    def _job_changed(self, job_key: Key) -> None:
        key, _ = job_key
        if key in self._targets:
            self._targets[key] = replace(self._targets[key], activity=self._activity(key))
        self._flush_soon()

    def _activity(self, key: str) -> Activity:
        if self._scheduler.running((key, Purpose.MEASURE)):
            return Activity.MEASURING
        if self._scheduler.running((key, Purpose.CHECK)):
            return Activity.CHECKING
        waiting = any(self._scheduler.pending((key, purpose)) for purpose in Purpose)
        return Activity.WAITING if waiting else Activity.IDLE

    # Showing

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if self._targets:
            self._follower.follow(self._programs.files)
        self._display.show(self.snapshot())
        waiting = [(is_settled, done) for is_settled, done in self._waiters if not done.done()]
        self._waiters = [(is_settled, done) for is_settled, done in waiting if not is_settled()]
        for is_settled, done in waiting:
            if is_settled():
                done.set_result(None)

    def _is_settled(self, path: str, version: int | None) -> bool:
        document = self._documents.get(path)
        reached = document is not None and (version is None or document.version >= version)
        busy = any(self._targets[key].target.file == path for key, _ in self._scheduler.keys if key in self._targets)
        waiting = path in self._timers or self._follower.is_waiting
        return self._started and reached and not busy and not waiting


def _real(device: str) -> str:
    """A device that something can be measured on: a simulated one gives way to what the machine has."""
    return "auto" if device.startswith(f"{DeviceKind.SIMULATED.value}:") else device


def _is_broken(found: Scan) -> bool:
    """Whether a file could not be read as Python, as it often cannot while somebody types."""
    return not found.targets and any(finding.code == "scan-error" for finding in found.findings)
