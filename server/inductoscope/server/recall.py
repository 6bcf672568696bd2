"""Answers of earlier runs: whether one is kept that a new run would give again, and what is kept of a run for that.

A run is recalled when the same program would be run in the same way by the same compiler: what its files mean (also
those that only a run tells of), its inputs, device, rung and settings, the interpreter with all that is installed, the
processor and Inductoscope itself.  Its lines are told as they are now.  Measurements and failures are not kept.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import inductoscope
from inductoscope.protocol import codec
from inductoscope.protocol._version import __version__
from inductoscope.protocol.messages import Errand, Hello
from inductoscope.protocol.report import Cached, Rung, Status, TargetReport
from inductoscope.server import meaning, result_store
from inductoscope.server.alignment import Alignment
from inductoscope.server.environments import Environments, Words
from inductoscope.server.meaning import Meaning
from inductoscope.server.positions import Text
from inductoscope.server.restating import restated
from inductoscope.server.result_store import ResultStore
from inductoscope.server.workers.run import RunOutcome, RunRequest

_KEPT = {Status.COMPILED, Status.PARTIAL, Status.EAGER}

_OWN_FILES = {".py", ".json", ".cpp", ".h"}

FOLDER_VARIABLE = "INDUCTOSCOPE_CACHE"
"""The environment variable that names another folder for results, or says `off`."""


@dataclass(frozen=True)
class Program:
    """The files of a program as they are now.

    `closure` is what reading finds; `also` gives what further files mean, those that are there; `text` is the text of
    a file, unsaved text included.
    """

    closure: Mapping[str, Meaning]
    also: Callable[[Iterable[str]], Mapping[str, Meaning]]
    text: Callable[[str], str | None]

    def name(self, files: Iterable[str] = ()) -> str:
        """A name for what the program means, `files` included, and for the environment variables that it names."""
        return name_of_program({**self.closure, **self.also(path for path in files if path not in self.closure)})


@dataclass(frozen=True)
class Question:
    """A run that could be made: `key` names all that it depends on, as far as it can be told without running it."""

    request: RunRequest
    interpreter: Words
    program: Program

    @cached_property
    def _about(self) -> str:
        request, target = self.request, self.request.target
        device = request.device if request.own is None else f"{request.device} {request.own.identity}"
        what = (target.file, target.name, target.entry, target.kind.value, target.comment or "")
        how = (device, request.rung.value, request.cwd or "", f"{request.probe_seconds}", f"{len(request.what_if)}")
        return meaning.name_of((*what, *how, *request.what_if, *request.search_paths, *self.interpreter))

    def key(self, environment: str) -> str:
        """The key in the store, for the named environment."""
        return meaning.name_of((self._about, environment, ours(), self.program.name()))

    @property
    def can_be_kept(self) -> bool:
        """Whether an answer would be the same next time: what is measured would not."""
        return self.request.rung is not Rung.MEASURE and self.request.errand is Errand.REPORT


@dataclass(frozen=True)
class _Kept:
    """What is kept of a run; `program` names what its program meant, with `files`, which the run told of."""

    at: float
    program: str
    files: tuple[str, ...]
    hello: Hello
    report: TargetReport
    texts: dict[str, str] = field(default_factory=dict)


class Recall:
    """Finds answers of earlier runs in `store`; without one there are none."""

    def __init__(self, store: ResultStore | None, environments: Environments | None = None) -> None:
        self.store = store
        self._environments = environments or Environments()

    async def find(self, question: Question) -> RunOutcome | None:
        """The answer of an earlier run, with the lines that it has now; None where there is none that holds."""
        key = await self._key(question)
        if key is None or self.store is None:
            return None
        found = await asyncio.to_thread(lambda store: list(store.find(key)), self.store)
        for name, value in found:
            kept = await asyncio.to_thread(_read, value)
            if kept is None:
                self.store.drop(name)
            elif kept.program == question.program.name(kept.files):
                texts = {path: question.program.text(path) for path in kept.texts}
                self.store.touch(name)
                return await asyncio.to_thread(_answer, kept, texts)
        return None

    async def keep(self, question: Question, outcome: RunOutcome, began: float) -> None:
        """Keep the answer of a run that began at the time `began` (Unix), if it can be relied on next time."""
        closure = question.program.closure
        key = await self._key(question) if _is_lasting(outcome) else None
        if key is None or self.store is None or outcome.hello is None:
            return
        files = tuple(path for path in outcome.files if path not in closure)
        meant = {**closure, **question.program.also(files)}
        if not await asyncio.to_thread(_is_as_read, question, meant, began):
            return
        named = await asyncio.to_thread(mentioned, outcome.report)
        texts = {path: text for path in named & meant.keys() if (text := question.program.text(path)) is not None}
        kept = _Kept(time.time(), name_of_program(meant), outcome.files, outcome.hello, outcome.report, texts)
        await asyncio.to_thread(lambda store: store.put(key, kept.program, codec.to_json(kept)), self.store)

    async def _key(self, question: Question) -> str | None:
        if self.store is None or not question.can_be_kept:
            return None
        environment = await self._environments.name(question.interpreter)
        return None if environment is None else question.key(environment)


def users() -> Recall:
    """The answers that this machine's user has had, unless the environment turns that off."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder == "off":
        return Recall(None)
    return Recall(ResultStore(Path(folder)) if folder else result_store.users())


def name_of_program(closure: Mapping[str, Meaning]) -> str:
    """A name for what files mean, and for the environment variables that they name."""
    named = sorted({name for known in closure.values() for name in known.variables})
    return meaning.name_of((meaning.program(closure), *(f"{name}={os.environ.get(name)}" for name in named)))


@lru_cache(maxsize=1)
def ours() -> str:
    """A name for this Inductoscope: its version, and the state of the files that make reports."""
    parts = [__version__]
    for portion in inductoscope.__path__:
        for package in ("compiler", "protocol"):
            files = sorted(path for path in Path(portion, package).rglob("*") if path.suffix in _OWN_FILES)
            parts += [f"{path} {status.st_mtime_ns} {status.st_size}" for path in files if (status := path.stat())]
    return meaning.name_of(parts)


def _is_lasting(outcome: RunOutcome) -> bool:
    report = outcome.report
    return outcome.failure is None and report.status in _KEPT and report.benchmark is None and report.cached is None


def _is_as_read(question: Question, meant: Mapping[str, Meaning], began: float) -> bool:
    """Whether the files of a program are as the question has them, and were not written while the run read them."""
    try:
        for path, known in meant.items():
            if path not in question.request.overlays and Path(path).stat().st_mtime > began:
                return False
            if meaning.name_of([question.program.text(path) or ""]) != known.exact:
                return False
    except OSError:
        return False
    return True


def mentioned(report: Any) -> set[str]:
    """Every file that a part of a report has a place in."""
    if isinstance(report, tuple):
        return set().union(*map(mentioned, report))
    if not hasattr(report, "__dataclass_fields__"):
        return set()
    file = getattr(report, "file", None)
    own = {file} if isinstance(file, str) else set()
    return own.union(*(mentioned(getattr(report, name)) for name in report.__dataclass_fields__))


def _read(value: Any) -> _Kept | None:
    try:
        return codec.from_json(_Kept, value)
    except codec.CodecError:
        return None


def _answer(kept: _Kept, texts: Mapping[str, str | None]) -> RunOutcome:
    now = {path: Text(text) for path, text in texts.items() if text is not None}
    then = {path: Text(text) for path, text in kept.texts.items()}
    moves = {path: Alignment(then[path], text) for path, text in now.items() if text != then[path]}
    at = datetime.fromtimestamp(kept.at, timezone.utc).isoformat(timespec="seconds")
    report = restated(kept.report, moves)
    report = replace(report, cached=Cached(at, round(max(0.0, time.time() - kept.at), 1)))
    return RunOutcome(report, None, kept.hello, kept.files)
