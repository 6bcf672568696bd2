"""Data files: which a program is known to read, and what each says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from inductoscope.server.documents import read_input

PROGRAM = """
import json, sys
from inductoscope.compiler import opened
open("before.json").close()
record = opened.record()
assert opened.record() is record
{program}
print(json.dumps([path.rpartition("/")[2] for path in record.files(lambda file: "installed" not in file)]))
"""


def read_by(folder: Path, program: str) -> list[str]:
    """The files that a program is said to read, in a process of its own: the record cannot be taken back."""
    for name in ("before.json", "config.json", "weights.bin", "installed.json", ".hidden"):
        (folder / name).write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(program=program)], cwd=folder, capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def test_what_is_read_from_then_on_is_told(tmp_path: Path) -> None:
    program = "open('config.json').read(); import pathlib; pathlib.Path('weights.bin').read_bytes()"
    assert read_by(tmp_path, program) == ["config.json", "weights.bin"]


def test_what_is_written_installed_hidden_or_gone_is_not(tmp_path: Path) -> None:
    program = """
open("log.txt", "w").close(); open("log.txt").close()
open("installed.json").close(); open(".hidden").close(); open("/proc/self/status").close()
import os
open("gone.txt", "w").close(); os.rename("gone.txt", "kept.txt"); open("kept.txt").close(); os.remove("kept.txt")
try:
    open("never.txt")
except OSError:
    pass
"""
    assert read_by(tmp_path, program) == []


def test_a_text_says_what_it_says_and_another_file_its_size_and_time(tmp_path: Path) -> None:
    text, binary, large = tmp_path / "a.json", tmp_path / "b.bin", tmp_path / "c.txt"
    text.write_text("{}")
    binary.write_bytes(b"\xff\xfe\x00")
    large.write_text("x" * (2 << 20))
    said = {path: read_input(str(path)) for path in (text, binary, large)}
    assert said[text] == "{}" and len(said[large] or "") < 100
    for path in said:
        os.utime(path, ns=(1, 1))
    assert read_input(str(text)) == said[text]
    assert read_input(str(binary)) != said[binary] and read_input(str(large)) != said[large]
    assert read_input(str(tmp_path / "none")) is None
