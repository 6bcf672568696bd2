"""A day of editing leaves nothing behind: what is held on to is bounded by what is open, not by what happened."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from incremental.world import World
from inductoscope.server.positions import Text
from inductoscope.server.snapshot import Result

MODEL = 'import helper\nENTRY = "f"\ndef get_inputs(): ...\ndef f(x):\n    print({number})\n    return helper.g(x)\n'


def held() -> Counter[type]:
    """How many texts and results there are."""
    gc.collect()
    return Counter(type(one) for one in gc.get_objects() if type(one) in (Text, Result))


@pytest.mark.parametrize("steps", [1000])
async def test_edits_saves_and_changes_on_disk_leave_nothing_behind(tmp_path: Path, steps: int) -> None:
    world = World(tmp_path, keeps=False)
    world.write("model.py", MODEL.format(number=0))
    world.write("helper.py", "def g(x): return x\n")
    await world.start()
    world.open("model.py")
    await world.settle()
    at_first = held()
    sizes: list[int] = []
    for number in range(1, steps + 1):
        world.edit("model.py", "# why\n" * (number % 7) + MODEL.format(number=number))
        if number % 10 == 0:
            world.save("model.py")
            world.write("helper.py", f"def g(x): return x + {number}\n")
            world.tell("helper.py")
            await world.settle()
        if number % 250 == 0:
            sizes.append(_containers(world))
            for noted in (world.reader.runs, world.reader.stages, world.editor.publications, world.editor.progresses):
                noted.clear()
    later = held()
    assert len(set(sizes)) == 1, sizes
    assert later[Result] - at_first[Result] <= 2
    most = 2 * world.session._state._shifts.most
    assert later[Text] - at_first[Text] <= most + 10, "only texts of remembered shifts are held on to"
    await world.session.shutdown()


def _containers(world: World) -> int:
    """Items in all collections of the session and its parts, texts and shifts apart."""
    session = world.session
    parts = [session, session._state, session._checking, session._publishing, session._pauses, session._scans]
    parts += [session._checking._runs, session._checking._lookups, session._state.programs._dependencies]
    values = [value for part in parts for value in vars(part).values()]
    return sum(len(value) for value in values if isinstance(value, dict | list | set))
