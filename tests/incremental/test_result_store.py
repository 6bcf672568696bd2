"""What is kept on disk: whole or not at all, within a budget, whoever else uses the folder."""

from __future__ import annotations

import errno
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from inductoscope.server import result_store
from inductoscope.server.result_store import ResultStore

A, B, C = "a" * 64, "b" * 64, "c" * 64


def values(store: ResultStore, key: str) -> list[Any]:
    return [value for _, value in store.find(key)]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def padded(size: int) -> dict[str, str]:
    """A value that takes about `size` bytes on disk."""
    return {"pad": os.urandom(size).hex()}


def test_what_was_put_is_found_in_any_store_of_the_folder(tmp_path: Path) -> None:
    ResultStore(tmp_path).put(A, B, {"line": 3})
    assert values(ResultStore(tmp_path), A) == [{"line": 3}] and values(ResultStore(tmp_path), B) == []


def test_the_same_variant_is_replaced_and_another_stands_beside_it(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    for value in (1, 2):
        store.put(A, B, value)
    store.put(A, C, 3)
    assert sorted(values(store, A)) == [2, 3]


def test_variants_are_few_and_those_used_last_stay(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    for index in range(6):
        store.put(A, f"{index:064x}"[::-1], index)
        for path in files(tmp_path):  # earlier ones were used earlier
            os.utime(path, (path.stat().st_atime - 10, path.stat().st_mtime - 10))
    assert sorted(values(store, A)) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:-3],
        lambda content: content[:60] + bytes([content[60] ^ 1]) + content[61:],
        lambda content: content.replace(b"result 1", b"result 0"),
        lambda content: b"PK\x03\x04 something else",
    ],
    ids=["empty", "cut off", "a bit flipped", "another format", "foreign"],
)
def test_a_damaged_file_is_a_miss_and_is_removed(tmp_path: Path, harm: Any) -> None:
    store = ResultStore(tmp_path)
    store.put(A, B, {"line": 3})
    (path,) = files(tmp_path)
    path.write_bytes(harm(path.read_bytes()))
    assert values(store, A) == [] and files(tmp_path) == []


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, budget=100_000)
    for number in range(9):
        store.put(f"{number}" * 64, B, padded(9_000))
        for path in files(tmp_path):
            os.utime(path, (path.stat().st_atime - 10, path.stat().st_mtime - 10))
    ((name, _),) = store.find("0" * 64)
    store.touch(name)
    store.put(A, B, padded(9_000))
    store.put(C, B, padded(9_000))
    assert len(values(store, "0" * 64)) == 1 and values(store, "1" * 64) == []
    assert store.usage().size <= store.budget


def test_a_result_that_would_push_out_most_others_is_not_kept(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, budget=20_000)
    store.put(A, B, padded(9_000))
    assert files(tmp_path) == []


def test_a_full_disk_is_a_sentence_in_the_log_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with caplog.at_level(logging.WARNING):
        ResultStore(tmp_path).put(A, B, 1)
    assert "No space left on device" in caplog.text and str(tmp_path) in caplog.text
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_a_sentence_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    store = ResultStore(tmp_path / "file" / "results")
    store.put(A, B, 1)
    assert "is not kept" in caplog.text and values(store, A) == [] and store.usage().results == 0


def test_many_writers_and_readers_at_once(tmp_path: Path) -> None:
    def work(number: int) -> list[Any]:
        store = ResultStore(tmp_path, budget=400_000)
        store.put(A, B, {"by": number, **padded(4_000)})
        return values(store, A)

    with ThreadPoolExecutor(8) as pool:
        seen = [found for found in pool.map(work, range(40)) if found]
    assert all(set(value) == {"by", "pad"} for found in seen for value in found)
    assert len(values(ResultStore(tmp_path), A)) == 1 and not list(tmp_path.rglob("*.part"))


def test_what_a_dead_writer_left_is_removed_after_a_while(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put(A, B, 1)
    young, old = tmp_path / "aa" / "young.part", tmp_path / "aa" / "old.part"
    young.touch()
    old.touch()
    os.utime(old, (0, 0))
    assert store.usage().results == 1
    assert young.exists() and not old.exists()


def test_clearing_removes_everything_and_says_how_much(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put(A, B, 1)
    store.put(B, B, 2)
    assert store.clear().results == 2
    assert store.usage() == result_store.Usage(0, 0)


@pytest.mark.parametrize("key", ["../" * 10 + "etc", "A" * 64, "", "aa/bb"])
def test_no_key_names_a_file_elsewhere(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError):
        ResultStore(tmp_path).put(key, B, 1)
    with pytest.raises(ValueError):
        list(ResultStore(tmp_path).find(key))
