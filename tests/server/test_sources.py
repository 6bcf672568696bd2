"""From paths to Python files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inductoscope.server.sources import SourceError, python_files, read_text


def test_a_folder_is_searched_but_for_what_is_not_the_users(tmp_path: Path) -> None:
    for name in (
        "b.py",
        "a/deep/c.py",
        "a/notes.txt",
        ".hidden/x.py",
        "env/x.py",
        "lib/site-packages/x.py",
        "node_modules/x.py",
        "__pycache__/x.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    found = [str(path.relative_to(tmp_path)) for path in python_files(tmp_path)]
    assert found == ["a/deep/c.py", "b.py"]


def test_a_file_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.touch()
    assert python_files(path) == [path]


def test_paths_that_give_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for name, message in (
        ("no.py", "There is no file"),
        ("notes.txt", "is not a Python file"),
        ("", "There is no Python file in"),
    ):
        with pytest.raises(SourceError, match=message):
            python_files(tmp_path / name)


def test_declared_encodings_and_line_ends_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes("# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"))
    assert read_text(path) == "# coding: latin-1\r\nx = 'é'\r\n"
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert read_text(path) == "x = 1\n"


@pytest.mark.parametrize("data", [b"\x80\x81", b"# coding: no-such\n", b"x = 1\ny = 2\nz = '\xff'\n"])
def test_what_is_no_text_is_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"m\.py(, line \d+,)? is not Python text: .+ Save it as UTF-8"):
        read_text(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        read_text(tmp_path)


def test_the_line_that_is_no_text_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(b"x = 1\n# caf\xe9\n")
    with pytest.raises(SourceError, match=r"model\.py, line 2, is not Python text: .* Save it as UTF-8"):
        read_text(file)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.py")
    with pytest.raises(SourceError, match="no regular file"):
        read_text(tmp_path / "model.py")
