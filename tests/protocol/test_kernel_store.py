"""The store of assembled kernels: what is put is found, damage and rivals cost only what they touch."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

from inductoscope.protocol.kernel_store import NAME, KernelStore, named, nameless

KEY, OTHER = "ab" + "0" * 62, "cd" + "1" * 62
FACTS = {"configs": [{"registers": 32}]}


def put(store: KernelStore, key: str, size: int = 10) -> None:
    store.put(key, FACTS, {(0, "ptx"): os.urandom(size), (1, "ptx"): b"second"})


def size_of(store: KernelStore) -> int:
    return sum(path.stat().st_size for path in store.folder.glob("*/*"))


def test_what_is_put_is_found_by_everybody(tmp_path: Path) -> None:
    KernelStore(tmp_path / "new" / "folder").put(KEY, FACTS, {(0, "ptx"): f".entry {NAME}(".encode()})
    store = KernelStore(tmp_path / "new" / "folder")
    assert store.facts(KEY) == FACTS
    assert store.text(KEY, 0, "ptx", "triton_poi_7") == ".entry triton_poi_7("
    assert store.artifact(KEY, 0, "cubin") is None
    assert store.artifact(KEY, 7, "ptx") is None
    assert store.facts(KEY) == FACTS  # asking for what was never made is no damage
    assert store.facts(OTHER) is None
    assert not list(store.folder.glob("*/*.part"))


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "ab/cd", "g" * 64, "AB" * 32])
def test_no_key_names_a_file_elsewhere(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        KernelStore(tmp_path).facts(key)


@pytest.mark.parametrize("damage", ["empty", "cut", "overwritten", "no facts", "no JSON", "a folder"])
def test_a_damaged_file_is_as_good_as_none_and_can_be_put_again(tmp_path: Path, damage: str) -> None:
    store = KernelStore(tmp_path)
    put(store, KEY, 5000)
    (path,) = store.folder.glob("*/*.zip")
    content = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
        assert store.facts(KEY) is None
        return
    if damage == "no facts":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("0/ptx", "text")
    elif damage == "no JSON":
        store.put(KEY, FACTS, {})
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("facts.json", "{")
    else:
        middle = len(content) // 2
        broken = {"empty": b"", "cut": content[:middle], "overwritten": b"\0" * len(content)}[damage]
        path.write_bytes(broken)
    assert store.facts(KEY) is None
    assert not path.exists()
    put(store, KEY)
    assert store.facts(KEY) == FACTS


def test_flipped_bits_of_an_artifact_are_noticed(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    put(store, KEY, 5000)
    (path,) = store.folder.glob("*/*.zip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF  # in the middle of the random bytes of the first artifact
    path.write_bytes(content)
    assert store.artifact(KEY, 0, "ptx") is None


def test_trimming_takes_what_was_used_longest_ago(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    keys = [f"{number:02x}" + "0" * 62 for number in range(8)]
    for age, key in enumerate(keys):
        put(store, key, 10_000)
        used = time.time() - 1000 + age
        os.utime(next(store.folder.glob(f"*/{key}.zip")), (used, used))
    assert store.facts(keys[0]) == FACTS  # which makes it the youngest
    before = size_of(store)
    store.trim(before)
    assert size_of(store) == before
    store.trim(before // 2)
    assert size_of(store) <= before // 2
    left = [key for key in keys if store.facts(key) is not None]
    assert keys[0] in left
    assert keys[1] not in left
    assert keys[7] in left


def test_what_dead_writers_left_unfinished_goes_after_an_hour(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    put(store, KEY)
    old, fresh = tmp_path / "ab" / "old.part", tmp_path / "ab" / "fresh.part"
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(old, (0, 0))
    store.trim(10**9)
    assert not old.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_written_raises_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError):
        put(KernelStore(tmp_path / "file" / "store"), KEY)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    store = KernelStore(tmp_path)
    original = tempfile.mkstemp

    def full(**arguments: object) -> tuple[int, str]:
        descriptor, name = original(**arguments)  # type: ignore[call-overload]
        os.close(descriptor)
        return os.open("/dev/full", os.O_WRONLY), name

    with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(tempfile, "mkstemp", full)
        put(store, KEY, 100_000)
    assert not [path for path in store.folder.rglob("*") if path.is_file()]


def _rival(folder: str, seed: int) -> None:
    store = KernelStore(Path(folder))
    for number in range(40):
        key = f"{(number + seed) % 5:02x}" + "0" * 62
        put(store, key, 2000)
        assert store.facts(key) in (None, FACTS)
        store.trim(5000)


def test_rivals_never_see_half_a_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    rivals = [context.Process(target=_rival, args=(str(tmp_path), seed)) for seed in range(3)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join(60)
    assert [rival.exitcode for rival in rivals] == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (".entry triton_poi_1(", f".entry {NAME}("),
        ("triton_poi_1_param_0, triton_poi_1_param_12", f"{NAME}_param_0, {NAME}_param_12"),
        ("triton_poi_10 xtriton_poi_1 triton_poi_1_x triton_poi_1_param_x", None),
        (".text.triton_poi_1:", f".text.{NAME}:"),
        ('"triton_poi_1.py":3:4', f'"{NAME}.py":3:4'),
    ],
)
def test_names_are_left_out_as_words(text: str, plain: str | None) -> None:
    assert nameless(text, "triton_poi_1") == (plain if plain is not None else text)
    assert named(nameless(text, "triton_poi_1"), "triton_poi_1") == text
