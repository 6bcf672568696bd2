"""The warm processes of one interpreter: which there are, which one a run is forked from, and when they have to go.

They form a tree: the first has imported torch, the next have compiled something for a device, the next have imported
installed packages that a program imports, the last also those of its own modules that nobody is at work on.

A run never waits for a layer: it is forked from the deepest one that is ready and suits it, and what would have suited
it better is made afterwards, for the next run.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductoscope.protocol.devices import DeviceKind
from inductoscope.protocol.messages import Errand, Failure, Hello, Layer
from inductoscope.protocol.report import Rung
from inductoscope.server import sources
from inductoscope.server.workers import device, failures, prelude, warm
from inductoscope.server.workers.command import WorkerCommand
from inductoscope.server.workers.process import WorkerProcess
from inductoscope.server.workers.run import RunRequest, greet
from inductoscope.server.workers.warm import Stamp, WarmError, WarmProcess

logger = logging.getLogger("inductoscope.warm")

IDLE_S = 1200.0
"""Warm processes of an interpreter that nobody used for so long are ended; the next run starts them anew."""

TRY_AGAIN_S = 120.0
"""A layer that could not be made is not tried again for so long."""

MOST_EDITED = 32
"""Files that are taken for those that somebody is at work on, for as long as no others are."""

MOST_LAYERS = 6
"""Warm processes of an interpreter beside the first; each costs some tens of MiB."""


def suits(request: RunRequest) -> bool:
    """Whether a run may be in a process that was forked: not if it is timed, or for a device that is really there."""
    forks = sys.platform == "linux"
    observes = request.errand is Errand.REPORT and request.rung is not Rung.MEASURE
    there = request.cwd is None or Path(request.cwd).is_dir()
    return forks and observes and there and not request.device.startswith(DeviceKind.CUDA.value)


class Growth(enum.Enum):
    """Whether more runs are to be expected, for which layers are worth their while."""

    ALWAYS = "always"
    NONE = "none"


@dataclass
class _Node:
    """A layer: its process, or None when it could not be made; `since` and `used` are times of the loop's clock."""

    process: WarmProcess | None
    since: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    used: float = field(default_factory=lambda: asyncio.get_running_loop().time())


@dataclass
class _Root:
    """The first warm process and the layers above it, by what they have ready."""

    worker: WorkerProcess
    warm: WarmProcess
    hello: asyncio.Task[Hello | Failure]
    layers: dict[tuple[Layer, ...], _Node] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the first process is gone."""
        return not self.worker.alive or self.warm.lost

    @property
    def processes(self) -> tuple[WarmProcess, ...]:
        """All warm processes, the first one last."""
        return (*(node.process for node in self.layers.values() if node.process is not None), self.warm)

    @property
    def is_busy(self) -> bool:
        """Whether a run is in a child of theirs."""
        return any(process.is_busy for process in self.processes)

    def usable(self, key: tuple[Layer, ...]) -> WarmProcess | None:
        """The process that has these layers ready, if it is as it would be made now."""
        if not key:
            return None if self.ended else self.warm
        node = self.layers.get(key)
        if node is None or node.process is None or node.process.lost or node.process.changed():
            return None
        node.used = asyncio.get_running_loop().time()
        return node.process

    def is_hopeless(self, key: tuple[Layer, ...]) -> bool:
        """Whether it was not long ago that this layer could not be made."""
        node = self.layers.get(key)
        tried = node is not None and node.process is None
        return node is not None and tried and asyncio.get_running_loop().time() - node.since < TRY_AGAIN_S


class Nursery:
    """Forks workers of the interpreter that `command` starts."""

    def __init__(self, command: WorkerCommand, env: Mapping[str, str] | None) -> None:
        self._command = command
        self._env = env
        self._root: _Root | None = None
        self._lock = asyncio.Lock()
        self._growing = asyncio.Lock()
        self._unable: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._forking = 0
        self._readers = _Readers()
        self._edited: dict[str, None] = {}
        self._closed = False

    async def fork(self, request: RunRequest, growth: Growth) -> WorkerProcess | Failure | Hello | None:
        """A worker for `request`, which `suits`; None when it has to be started instead.

        A failure, or a hello with a problem, says why no worker of this interpreter can be had.  Raises `OSError` when
        the interpreter cannot be started.
        """
        if self._unable is not None:
            return None
        self._forking += 1
        try:
            return await self._fork(request, growth)
        finally:
            self._forking -= 1
            self._be_used()

    async def _fork(self, request: RunRequest, growth: Growth) -> WorkerProcess | Failure | Hello | None:
        root = await self._first()
        hello = await asyncio.shield(root.hello)
        if isinstance(hello, Failure) or hello.problem is not None:
            self._forget(root)
            return hello
        if self._unable is not None:
            self._forget(root)
            return None
        self._notice_changes(root)
        chain = self._chain(request, hello)
        worker = await self._from_deepest(root, chain, request)
        if worker is None:
            self._forget(root)
        elif growth is Growth.ALWAYS:
            self._go(self._grow(root, chain, request.cwd))
        return worker

    async def prepare(self) -> Hello | Failure | None:
        """Start the first warm process; what it said, or None when processes of this interpreter cannot be forked."""
        root = await self._first()
        hello = await asyncio.shield(root.hello)
        return None if self._unable is not None else hello

    async def close(self) -> None:
        """End all warm processes; runs in children of theirs end too."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        root, self._root = self._root, None
        if root is not None:
            await _end(root)

    async def _first(self) -> _Root:
        """The first warm process of today's installation, started where there is none."""
        async with self._lock:
            root = self._root
            if root is not None and root.hello.done() and (root.ended or root.warm.changed()):
                logger.info("warm processes are started anew: %s", ", ".join(root.warm.changed()) or "they have ended")
                self._forget(root)
                root = None
            if root is None:
                worker, process = await warm.start(self._command, self._env)
                root = self._root = _Root(worker, process, asyncio.create_task(self._greet(worker, process)))
                logger.info("warm process started pid=%d", worker.pid)
            return root

    async def _greet(self, worker: WorkerProcess, process: WarmProcess) -> Hello | Failure:
        hello = await greet(worker)
        if isinstance(hello, Hello) and failures.refused(hello) is None:
            try:
                if hello.warm is None:
                    raise WarmError("it does not know how")
                await process.get_warm()
            except WarmError as error:
                self._unable = str(error)
                logger.warning("processes of this interpreter are not forked: %s", error)
        return hello

    def _notice_changes(self, root: _Root) -> None:
        """Give up the layers that hold files as they no longer are: those are being edited."""
        for key, node in list(root.layers.items()):
            changed = node.process.changed() if node.process is not None else frozenset()
            if changed and node.process is not None:
                self._edited.update(dict.fromkeys(sorted(changed)))
                del root.layers[key]
                self._go(node.process.retire())
        for file in list(self._edited)[:-MOST_EDITED]:
            del self._edited[file]

    def _chain(self, request: RunRequest, hello: Hello) -> tuple[Layer, ...]:
        """What a run would best find ready, from the first layer to the last."""
        if request.own is not None:
            return ()
        wanted = Layer(device=device.resolve(request.device, request.rung, hello))
        file, roots = request.target.file, tuple(request.search_paths)
        found = prelude.of(file, self._readers.of(request), roots, {*request.overlays, *self._edited})
        modules = (Layer(None, names, file, roots) for names in dict.fromkeys((found.installed, found.own)) if names)
        return (wanted, *modules)

    async def _from_deepest(self, root: _Root, chain: tuple[Layer, ...], request: RunRequest) -> WorkerProcess | None:
        """A worker from the process that has most of `chain` ready."""
        for depth in range(len(chain), -1, -1):
            process = root.usable(chain[:depth])
            if process is None or any(map(process.depends_on, request.overlays)):
                continue
            try:
                worker = await process.fork_worker(request.cwd)
            except WarmError as error:
                logger.warning("a warm process cannot fork: %s", error)
                continue
            logger.info("worker forked pid=%d layers=%d of %d", worker.pid, depth, len(chain))
            return worker
        return None

    async def _grow(self, root: _Root, chain: tuple[Layer, ...], cwd: str | None) -> None:
        """Have all of `chain` ready for the next run, one layer after the other."""
        async with self._growing:
            for depth in range(1, len(chain) + 1):
                parent, key = root.usable(chain[: depth - 1]), chain[:depth]
                if parent is None or self._closed:
                    return
                if root.usable(key) is None and not root.is_hopeless(key):
                    root.layers[key] = _Node(await _layer(parent, key[-1], cwd))
                    await self._go_back_to(root, MOST_LAYERS)

    async def _go_back_to(self, root: _Root, most: int) -> None:
        """End the layers that were not used for longest."""
        made = [key for key, node in root.layers.items() if node.process is not None]
        for key in sorted(made, key=lambda key: root.layers[key].used)[: max(0, len(made) - most)]:
            process = root.layers.pop(key).process
            if process is not None:
                await process.retire()

    def _be_used(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._closed:
            return
        self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._be_idle)

    def _be_idle(self) -> None:
        root = self._root
        if root is not None and (root.is_busy or self._forking):
            self._be_used()
        elif root is not None:
            logger.info("warm processes were not used for %g s and are ended", IDLE_S)
            self._forget(root)

    def _forget(self, root: _Root) -> None:
        """End these warm processes as soon as no run is in a child of theirs."""
        if self._root is root:
            self._root = None
            self._go(_retire(root))

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Readers:
    """Texts of files as a run would have them, read again when a file changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Stamp, str | None]] = {}

    def of(self, request: RunRequest) -> Callable[[str], str | None]:
        """What reads a file for this run."""

        def read(file: str) -> str | None:
            if file in request.overlays:
                return request.overlays[file]
            kept = self._kept.get(file)
            if kept is None or kept[0].changed():
                kept = self._kept[file] = Stamp.of((file,)), _text(file)
            return kept[1]

        return read


def _text(file: str) -> str | None:
    try:
        return sources.read_text(Path(file))
    except sources.SourceError:
        return None


async def _layer(parent: WarmProcess, layer: Layer, cwd: str | None) -> WarmProcess | None:
    """A child of `parent` that has `layer` ready; None when that cannot be."""
    process: WarmProcess | None = None
    try:
        process = await parent.fork_layer(layer, cwd)
        await process.get_ready()
        return process
    except (OSError, asyncio.CancelledError) as error:
        if process is not None:
            await process.close()
        if isinstance(error, asyncio.CancelledError):
            raise
        logger.info("%s is not kept ready: %s", layer, error)
        return None


async def _retire(root: _Root) -> None:
    try:
        for process in root.processes:
            await process.childless()
    finally:
        await _end(root)


async def _end(root: _Root) -> None:
    root.hello.cancel()
    await asyncio.gather(root.hello, return_exceptions=True)
    for process in root.processes:
        await process.close()
    await root.worker.kill()
