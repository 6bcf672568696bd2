"""How much memory there is to share."""

import psutil

from inductoscope.server import machine


def test_memory_is_what_the_system_has():
    total = machine.memory_bytes()
    assert total is not None
    assert total <= psutil.virtual_memory().total * 1.01


def test_a_container_has_no_more_than_its_limit(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(machine, "_CONTAINER_LIMIT", limit)
    whole = machine.memory_bytes()
    limit.write_text("max\n")
    assert machine.memory_bytes() == whole
    limit.write_text("1000000\n")
    assert machine.memory_bytes() == 1_000_000
    assert machine.share_of_memory(0.5) == 500_000
