"""A worker that was forked from a warm process: everything that a new process has of its own, then the run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NoReturn

from inductoscope.compiler.bootstrap import take_away
from inductoscope.compiler.warm.world import World, wear
from inductoscope.protocol.messages import Fork, Hello


def be_worker(request: Fork, hello: Hello, world: World, descriptors: list[int]) -> NoReturn:
    """Serve one run.  The descriptors are those to read from, to write to, and for what is printed."""
    from inductoscope.compiler import worker

    os.setsid()
    wear(request.mark)
    read_fd, write_fd, output = descriptors
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    if request.cwd is not None:
        os.chdir(request.cwd)
    folder = worker.own_folder(world.renew)
    hello = replace(hello, pid=os.getpid(), problem=folder if isinstance(folder, str) else None)
    worker.converse(take_away(read_fd), take_away(write_fd), folder, lambda: hello)
