"""A warm process: wait for requests, fork, tell when a child has ended.

The parent does as little as possible, so that a child finds it as it was made: nothing is imported or compiled between
two forks.  It costs no time while it waits, and ends with the server, whose end closes the socket.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from inductoscope.compiler.compat import ahead
from inductoscope.compiler.warm import forked, layers
from inductoscope.compiler.warm.control import Control
from inductoscope.compiler.warm.world import World, still_torch
from inductoscope.protocol.codec import CodecError
from inductoscope.protocol.messages import Ended, Fork, Forked, Hello, Warmed

_NOTHING = object()
_NO_WORK: Iterator[object] = iter(())


class WarmProcess:
    """Serves the socket `control`.  `hello` is what a worker that is forked from here says first.

    `later` is work that can be done in small steps while nobody asks for anything.
    """

    def __init__(self, control: Control, hello: Hello, world: World, later: Iterator[object] = _NO_WORK) -> None:
        self._control = control
        self._hello = hello
        self._world = world
        self._later = later
        self._children: dict[int, int] = {}  # process id by the descriptor that tells its end
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Fork whenever the server asks for it; returns when the server is gone."""
        settle()
        while True:
            for descriptor, _ in self._wait():
                if descriptor in self._children:
                    self._reap(descriptor)
                elif not self._answer():
                    return

    def _wait(self) -> list[tuple[int, int]]:
        """What is ready; meanwhile the later work is done, after which waiting costs no time."""
        while not (ready := self._poll.poll(0)):
            if next(self._later, _NOTHING) is _NOTHING:
                return self._poll.poll()
        return ready

    def _answer(self) -> bool:
        """Do the next request; False when there are no more."""
        try:
            received = self._control.receive()
        except (OSError, CodecError):
            return False
        if received is None:
            return False
        request, descriptors = received
        if not isinstance(request, Fork):
            return False
        pid = self._fork(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # its end is seen by the next look
            self._control.send(Forked(pid))
        return True

    def _fork(self, request: Fork, descriptors: list[int]) -> int | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # idle threads of libraries that know of forks
                pid = os.fork()
        except OSError:
            return None
        if pid == 0:
            self._be_child(request, descriptors)
        descriptor = os.pidfd_open(pid)
        self._children[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)
        return pid

    def _reap(self, descriptor: int) -> None:
        pid = self._children.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            self._control.send(Ended(pid, os.waitstatus_to_exitcode(status)))

    def _be_child(self, request: Fork, descriptors: list[int]) -> NoReturn:
        status = 1
        try:
            self._control.close()
            for descriptor in self._children:
                os.close(descriptor)
            if request.layer is None:
                forked.be_worker(request, self._hello, self._world, descriptors)
            be_layer(request, self._hello, self._world, descriptors[0])
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


def be_layer(request: Fork, hello: Hello, world: World, descriptor: int) -> None:
    """Be a warm process with one layer more; returns when the server is gone."""
    assert request.layer is not None
    control = Control(descriptor)
    made = layers.add(request.layer, request.cwd, world.folder)
    hello = replace(hello, pid=os.getpid(), warm=(*(hello.warm or ()), *made.has))
    _serve(control, hello, world, made.warmed)


def be_first(descriptor: int, folder: Path | str, greet: Callable[[], Hello], unable: Callable[[str], Hello]) -> None:
    """Be the warm process that has imported torch; returns when the server is gone.

    `folder` is that of this process's caches, or why there is none; `greet` and `unable` make what it says first.
    """
    control = Control(descriptor)
    hello = greet() if isinstance(folder, Path) else unable(folder)
    with contextlib.suppress(OSError):
        if hello.problem is not None or not isinstance(folder, Path):
            control.send(hello)
            return
        world = World(still_torch(), folder)
        warmed = Warmed(layers.installation(), layers.why_unfit(layers.threads()))
        _serve(control, replace(hello, warm=("torch",)), world, warmed, _imports_used_later())


def _imports_used_later() -> Iterator[str]:
    yield from ahead.imports_used_later()
    settle()


def _serve(control: Control, hello: Hello, world: World, warmed: Warmed, later: Iterator[object] = _NO_WORK) -> None:
    control.send(hello)
    control.send(warmed)
    if warmed.unfit is None:
        WarmProcess(control, hello, world, later).serve()


def settle() -> None:
    """Keep the collector from touching what is here now, in this process and in its children: a page that is written to
    is a page that is copied."""
    gc.collect()
    gc.freeze()
