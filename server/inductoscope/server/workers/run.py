"""One run: hand a request to a worker, follow it, hold it to its limits, and say how it ended.

A run always ends in a `RunOutcome`, whatever the worker does; only cancelling the task, or an error in the caller's
`on_event`, raises.  The worker is not ended here: the pool does that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.codec import CodecError
from inductoscope.protocol.messages import (
    Assembling,
    Errand,
    Failure,
    FindingFound,
    Hello,
    Memory,
    Message,
    Progress,
    Reuse,
    Run,
    RunDone,
    RunFailed,
    RungDone,
    Target,
)
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Finding, Rung, TargetReport
from inductoscope.server.workers import device, failures
from inductoscope.server.workers.memory import MemoryStore
from inductoscope.server.workers.process import WorkerProcess

logger = logging.getLogger("inductoscope.run")

OnEvent: TypeAlias = Callable[[Message], None]
"""Called on the event loop with each `Progress`, `FindingFound`, `RungDone` and `LogLine` of a run."""

MEMORY_INTERVAL_S = 0.2
START_TIMEOUT_S = 180.0
"""How long a worker may take to say hello; importing torch from a cold disk takes tens of seconds."""


@dataclass(frozen=True)
class RunRequest:
    """What to run and its limits.

    `device` is `auto`, `cpu`, `cuda` or `sim:NAME`; `overlays` maps absolute paths to unsaved text; `timeout_s` is wall
    clock in seconds from the moment that the worker is ready; `memory_bytes` limits the resident memory of the worker
    and its children; `cwd` is the working folder of the program, by default the server's own; `memories` is where the
    worker's memory of earlier runs lies, None for a run without; `own` is the GPU that `device` names where somebody
    described it.
    """

    target: Target
    device: str
    rung: Rung
    overlays: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0
    memory_bytes: int | None = None
    cwd: str | None = None
    search_paths: tuple[str, ...] = ()
    bench_seconds: float = 2.0
    what_if: tuple[str, ...] = ()
    probe_seconds: float = 0.0
    assembling: Assembling = field(default_factory=Assembling)
    memories: MemoryStore | None = None
    own: OwnDevice | None = None
    errand: Errand = Errand.REPORT
    bench: BenchOptions = field(default_factory=BenchOptions)
    reuse: Reuse = field(default_factory=Reuse)


@dataclass(frozen=True)
class RunOutcome:
    """What a run came to: always a report; `failure` when it did not finish; `hello` when the worker could start.

    `files` are the user's own files that the program imported, as far as the worker told.  `card` and `decisions` are
    what the errands of these names bring.
    """

    report: TargetReport
    failure: Failure | None
    hello: Hello | None
    files: tuple[str, ...] = ()
    card: OwnDevice | None = None
    decisions: Recording | None = None


class _Conversation:
    """What the worker has said so far."""

    def __init__(self, worker: WorkerProcess, request: RunRequest, told: Memory, on_event: OnEvent) -> None:
        self._worker = worker
        self._request = request
        self._told = told
        self.memory = told
        self._on_event = on_event
        self.doing: str | None = None
        self.report: TargetReport | None = None
        self.files: tuple[str, ...] = ()
        self.card: OwnDevice | None = None
        self.decisions: Recording | None = None
        self.found: list[Finding] = []

    async def follow(self) -> Failure | None:
        """Hand over the request and read up to the last message; None when there is a report."""
        try:
            await self._worker.send(_message(self._request, self._told))
        except OSError as error:
            return await self._broken(str(error))
        while True:
            try:
                message = await self._worker.receive()
            except (OSError, CodecError) as error:
                return await self._broken(str(error))
            match message:
                case None:
                    return await self._broken(None)
                case RunDone():
                    self.report, self.files, self.memory = message.report, message.files, message.memory
                    self.card, self.decisions = message.card, message.decisions
                    return None
                case RunFailed():
                    self.report, self.files = message.report or self.report, message.files
                    return message.failure
                case _:
                    self._note(message)

    async def watch_memory(self, limit: int) -> Failure:
        """Return once the worker's tree takes more than `limit` bytes."""
        while True:
            used = self._worker.memory_bytes()
            if used > limit:  # which a worker that forks seems to be long before it is
                used = await self._worker.shared_once_bytes()
            if used > limit:
                break
            await asyncio.sleep(MEMORY_INTERVAL_S)
        return failures.out_of_memory(self._request.target, used, limit, self.doing)

    async def late(self) -> Failure:
        """The failure of a run whose time is over, with the place where it hangs."""
        await self._worker.dump_stacks()
        return failures.timed_out(self._request.target, self._request.timeout_s, self._worker.tail, self.doing)

    def _note(self, message: Message) -> None:
        match message:
            case Progress():
                self.doing = message.text
            case FindingFound():
                self.found.append(message.finding)
            case RungDone():
                self.report = message.report
        self._on_event(message)

    async def _broken(self, problem: str | None) -> Failure:
        """Why there are no more messages: the worker's end where it ended, else what is wrong with the channel.

        `problem` is None when the channel was closed.
        """
        end = await self._worker.ended()
        if end is None:
            target, output = self._request.target, self._worker.tail
            return failures.hung_up(target, output) if problem is None else failures.garbled(target, problem, output)
        return failures.crashed(self._request.target, end, self._worker.tail, self.doing)


def unfinished(request: RunRequest, failure: Failure, hello: Hello | None = None) -> RunOutcome:
    """The outcome of a run that `failure` ended before the worker knew anything."""
    report = failures.blank(request.target, request.device, request.rung)
    return RunOutcome(failures.with_failure(report, (), failure, request.target), failure, hello)


async def greet(worker: WorkerProcess) -> Hello | Failure:
    """Wait for the worker's hello, or say why there is none."""
    try:
        message = await asyncio.wait_for(worker.receive(), START_TIMEOUT_S)
    except asyncio.TimeoutError:
        return failures.silent_start(START_TIMEOUT_S, worker.tail)
    except (OSError, CodecError) as error:
        return failures.no_hello(str(error), worker.tail)
    if message is None:
        end = await worker.ended()
        return failures.died_at_start(end, worker.tail) if end else failures.no_hello("it said nothing", worker.tail)
    if not isinstance(message, Hello):
        return failures.no_hello(f"its first message is {type(message).__name__}", worker.tail)
    return message


async def converse(worker: WorkerProcess, hello: Hello, request: RunRequest, on_event: OnEvent) -> RunOutcome:
    """Have a worker that has said hello do `request`."""
    refusal = failures.refused(hello)
    if refusal is not None:
        return unfinished(request, refusal, hello)
    request = replace(request, device=device.resolve(request.device, request.rung, hello))
    about = (hello.executable, request.target.key, request.device)
    told = request.memories.recall(*about) if request.memories is not None else Memory()
    conversation = _Conversation(worker, request, told, on_event)
    failure = await _within_limits(conversation, request)
    if failure is None and conversation.report is not None:
        if request.memories is not None and conversation.memory != told:
            request.memories.keep(conversation.memory, *about)
        brought = conversation.card, conversation.decisions
        return RunOutcome(conversation.report, None, hello, conversation.files, *brought)
    assert failure is not None  # without a failure there is a report
    known = conversation.report or failures.blank(request.target, request.device, request.rung)
    report = failures.with_failure(known, conversation.found, failure, request.target)
    logger.info("target=%s failure=%s details=%s", request.target.key, failure.kind.value, failure.details)
    return RunOutcome(report, failure, hello, conversation.files)


async def _within_limits(conversation: _Conversation, request: RunRequest) -> Failure | None:
    tasks = [asyncio.create_task(conversation.follow())]
    if request.memory_bytes is not None:
        tasks.append(asyncio.create_task(conversation.watch_memory(request.memory_bytes)))
    try:
        await asyncio.wait(tasks, timeout=request.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                return task.result()
        return await conversation.late()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _message(request: RunRequest, told: Memory) -> Run:
    return Run(
        run_id=1,  # a worker process serves one run
        target=request.target,
        device=request.device,
        rung=request.rung,
        overlays=dict(request.overlays),
        search_paths=request.search_paths,
        bench_seconds=request.bench_seconds,
        what_if=request.what_if,
        probe_seconds=request.probe_seconds,
        assembling=request.assembling,
        memory_bytes=request.memory_bytes,
        memory=told,
        own=request.own,
        errand=request.errand,
        bench=request.bench,
        reuse=request.reuse,
    )
