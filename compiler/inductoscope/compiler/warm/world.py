"""What belongs to a process and not to its memory, as a new process of the user's would have it."""

from __future__ import annotations

import ctypes
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from inductoscope.compiler import scratch, usercode


@dataclass(frozen=True)
class World:
    """What the first warm process found before it changed it: `threads` of torch, and the `folder` of its caches."""

    threads: int
    folder: Path

    def renew(self, folder: Path) -> None:
        """Give this process, which was forked from a warm one, what a new one would have; its caches go to `folder`."""
        import torch

        scratch.move_caches(self.folder, folder)
        usercode.forget_folders()
        torch.set_num_threads(self.threads)
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()


def still_torch() -> int:
    """Keep torch from starting threads in this process; returns how many it would have used.

    To be called before torch computes anything: the threads of its pool would not be there after a fork.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    return threads


def wear(mark: str) -> None:
    """Have the mark (`NAME=value`) in the environment, also where the system shows that of a running process.

    The system shows the memory that the environment was in when the process was started: the old value is written over.
    """
    name, _, value = mark.partition("=")
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    address = getenv(name.encode())
    if address and len(ctypes.string_at(address)) == len(value.encode()):
        ctypes.memmove(address, value.encode(), len(value.encode()))
    os.environ[name] = value
