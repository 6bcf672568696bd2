"""Writes records the way that torch writes its structured trace, so that whoever reads the one reads the other.

One file for each process, made at the first record and written without a buffer: what a killed process did is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LEFT_OUT = frozenset({"describe_tensor", "describe_storage", "describe_source"})
"""Kinds that nobody reads, and that are many."""


class Writer:
    """The file of this process, or of the one that is forked from it."""

    def __init__(self, folder: Path, torch: str) -> None:
        self._folder = folder
        self._torch = torch
        self._descriptor: int | None = None
        self._process = 0

    def write(self, metadata: Mapping[str, Any], payload: str | None, place: str, at: float) -> None:
        """Append one record: `place` is the file and line that told it, `at` the time in seconds since the epoch."""
        if not _LEFT_OUT.isdisjoint(metadata):
            return
        process = os.getpid()
        if self._descriptor is None or self._process != process:
            self._begin(process, at)
        self._append(metadata, payload, place, at)

    def tell(self, kind: str, fields: Mapping[str, Any], compile_id: Mapping[str, Any] | None = None) -> None:
        """Append a record of a kind that torch does not have; `compile_id` are its numbers of a compilation."""
        self.write({kind: fields, **(compile_id or {})}, None, "inductoscope:1", time.time())

    def _begin(self, process: int, at: float) -> None:
        """A name that no other process has, ranks and processes on other machines included."""
        self._process = process
        rank = os.environ.get("RANK")
        name = f"trace_{f'rank_{rank}_' if rank else ''}{int(at * 1e6):x}_{process}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self._folder / name, flags, 0o600)
        fields = {
            "command": [*getattr(sys, "orig_argv", sys.argv)],
            "python": sys.version.split()[0],
            "torch": self._torch,
            "folder": os.getcwd(),  # noqa: PTH109  # as text
        }
        of_rank = {"rank": int(rank)} if rank is not None and rank.isdecimal() else {}
        self._append({"inductoscope_program": fields, **of_rank}, None, "inductoscope:1", at)

    def _append(self, metadata: Mapping[str, Any], payload: str | None, place: str, at: float) -> None:
        clock = time.strftime("%m%d %H:%M:%S", time.localtime(at))
        head = f"V{clock}.{int(at % 1 * 1e6):06d} {self._process} {place}] {json.dumps(metadata, default=repr)}"
        text = head if payload is None else "{}\n\t{}".format(head, payload.replace("\n", "\n\t"))
        assert self._descriptor is not None
        data = f"{text}\n".encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._descriptor, data) :]
