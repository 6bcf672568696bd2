"""Documents of hundreds of thousands of lines: nothing waits while they are read, and what was known stays."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from incremental.world import World
from inductoscope.server import background_scan, imports, meaning
from inductoscope.server.positions import Text
from inductoscope.server.shift import Shifts, between
from inductoscope.server.targets import Scan, scan

MODEL = 'ENTRY = "f"\ndef get_inputs(): ...\ndef f(x):\n    print(x)\n    return x\n'
PADDING = "# nothing to see\n" * (meaning.LARGE // 17 + 1)
LARGE = MODEL + PADDING


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    await world.start()
    return world


async def settled(world: World, name: str = "model.py") -> None:
    version = world._versions[name]
    await asyncio.wait_for(world.session.settled(world.path(name), version), 60)


async def test_a_large_document_is_scanned_in_a_process_of_its_own() -> None:
    assert await background_scan.in_process(LARGE, "/w/model.py", ()) == scan(LARGE, "/w/model.py", ())


async def test_its_targets_are_found_and_run(world: World) -> None:
    world.write("model.py", LARGE)
    world.open("model.py")
    assert world.session.snapshot().targets == {}
    await settled(world)
    assert world.reader.runs == ["f"] and world.shown("model.py") == [(4, "print(x) breaks the graph")]
    await world.session.shutdown()


async def test_what_is_known_stays_and_moves_while_it_is_read_again(world: World) -> None:
    world.write("model.py", LARGE)
    world.open("model.py")
    await settled(world)
    world.edit("model.py", "# why\n" + LARGE)
    for _ in range(5):
        await asyncio.sleep(0)
    snapshot = world.session.snapshot()
    assert [snapshot.line_of(view) for view in snapshot.targets_in(world.path("model.py"))] == [4]
    assert world.shown("model.py") == [(5, "print(x) breaks the graph")]
    world.save("model.py")
    world.clock.advance(5)
    await settled(world)
    assert world.shown("model.py") == [(5, "print(x) breaks the graph")]
    await world.session.shutdown()


async def test_only_the_newest_text_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    ended: list[str] = []

    async def slowly(text: str, path: str, wanted: tuple[str, ...]) -> Scan:
        read.append(text[:9])
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(text[:9])
        raise AssertionError

    monkeypatch.setattr(background_scan, "in_process", slowly)
    world.write("model.py", "# first  \n" + LARGE)
    world.open("model.py")
    await asyncio.sleep(0)
    for name in ("# second ", "# third  "):
        world.edit("model.py", f"{name}\n{LARGE}")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert read == ["# first  ", "# second ", "# third  "] and ended == read[:2]
    world.close("model.py")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ended == read
    await world.session.shutdown()


async def test_a_process_that_fails_has_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_scan, "_MAIN", "raise MemoryError({0!r})")
    assert await background_scan.in_process(LARGE, "/w/model.py", ()) == Scan((), ())


def test_its_imports_are_found_line_by_line() -> None:
    several = "if d:\n    from f.g import (  # why\n        h,\n        i,\n    )\n"
    lines = f"import a, b.c as d\nfrom . import e\n{several}x = 'import no'\n"
    small, large = (imports.read(text).imports for text in (lines, lines + PADDING))
    assert set(large) == set(small) and len(large) == 4


def test_it_means_what_it_says_letter_by_letter() -> None:
    one, other = (imports.read(text + LARGE).meaning for text in ("", "# why\n"))
    assert one.plain != other.plain and one == imports.read(LARGE).meaning


def test_a_shift_of_many_lines_is_found_at_once() -> None:
    lines = [f"x{number} = {number}" for number in range(400_000)]
    old = Text("\n".join(lines))
    lines[200_000:200_001] = ["# one", "# two"]
    new = Text("\n".join(lines))
    assert (old.line(1), new.line(1)) == ("x0 = 0", "x0 = 0")
    began = time.process_time()
    move = between(old, new)
    assert time.process_time() - began < 2, "comparing item by item would take longer"
    assert [move.forward(line) for line in (1, 200_000, 200_001, 200_002, 400_000)] == [
        1,
        200_000,
        None,
        200_003,
        400_001,
    ]


def test_remembered_shifts_are_bounded_by_the_texts_they_hold() -> None:
    shifts = Shifts(budget=10_000)
    for number in range(100):
        shifts.between(Text("x" * 1000), Text(f"{number}" * 500))
        assert shifts.size <= 10_000
    assert shifts.between(Text("x" * 90_000), Text("y")).runs == ()
    assert shifts.between(Text("x"), Text("x")).runs and shifts.size <= 10_000
