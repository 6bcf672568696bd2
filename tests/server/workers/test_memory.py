"""What workers want to be told again, kept on disk."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from inductoscope.protocol.messages import Memory
from inductoscope.server.workers import memory
from inductoscope.server.workers.memory import MemoryStore

HERE = ("/usr/bin/python", "/w/model.py::f", "cpu")


def test_a_run_is_told_what_the_last_one_of_its_kind_left(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "runs")
    assert store.recall(*HERE) == Memory()
    store.keep(Memory("keys", "torch"), *HERE)
    store.keep(Memory("newer keys", "torch"), *HERE)
    assert store.recall(*HERE) == Memory("newer keys", "torch")


def test_other_targets_and_devices_share_only_what_is_of_the_interpreter(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path)
    store.keep(Memory("keys", "torch"), *HERE)
    assert store.recall(HERE[0], "/w/model.py::g", "cpu") == Memory("", "torch")
    assert store.recall(HERE[0], HERE[1], "sim:H200") == Memory("", "torch")
    assert store.recall("/other/python", *HERE[1:]) == Memory()


def test_what_is_too_long_is_not_kept(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path)
    store.keep(Memory("x" * (memory.LONGEST + 1), "torch"), *HERE)
    assert store.recall(*HERE) == Memory("", "torch")


def test_what_nobody_asked_for_in_a_month_is_dropped(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path)
    store.keep(Memory("keys"), *HERE)
    (old,) = tmp_path.iterdir()
    long_ago = time.time() - 2 * memory.DROPPED_AFTER_S
    os.utime(old, (long_ago, long_ago))
    store.keep(Memory("others"), HERE[0], "/w/other.py::f", "cpu")
    assert store.recall(*HERE) == Memory()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_no_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = MemoryStore(tmp_path / "file")
    store.keep(Memory("keys"), *HERE)
    assert store.recall(*HERE) == Memory()


def test_nothing_half_written_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = MemoryStore(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        store.keep(Memory("a text", "another"), "python", "target", "cpu")
    assert list(tmp_path.iterdir()) == []
    assert store.recall("python", "target", "cpu") == Memory("", "")
