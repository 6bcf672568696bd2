"""Streams and events of a device on which everything has happened by the time that somebody asks."""

from __future__ import annotations

from typing import Any

import torch


class Event(torch.Event):
    """A CUDA event that has always happened."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """The arguments of `torch.cuda.Event`."""
        return super().__new__(cls, device="cuda")

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds; not simulated, so that rates computed from it stay finite."""
        return 1.0

    def record(self, stream: Any = None) -> None:
        """Nothing to do."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to do."""

    def synchronize(self) -> None:
        """Nothing to do."""

    def query(self) -> bool:
        """Always done."""
        return True


class Stream(torch.Stream):
    """A CUDA stream on which everything is always done."""

    cuda_stream = 0

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        """The arguments of `torch.cuda.Stream`."""
        return super().__new__(cls, device="cuda")

    def wait_stream(self, stream: Any) -> None:
        """Nothing to do."""

    def wait_event(self, event: Any) -> None:
        """Nothing to do."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return event or Event()

    def synchronize(self) -> None:
        """Nothing to do."""

    def query(self) -> bool:
        """Always done."""
        return True
