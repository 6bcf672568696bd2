"""Which Python is chosen, and what is said about one that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inductoscope.server.interpreter import InterpreterError, choose


def environment(folder: Path) -> str:
    """A virtual environment as far as its files tell; the path of its Python."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    python.chmod(0o755)
    return str(python)


def test_the_order_of_precedence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    inner = tmp_path / "src"
    inner.mkdir()
    assert choose(inner, environ={}).path == sys.executable
    local = environment(tmp_path / ".venv")
    assert choose(inner, environ={}).path == local
    active = environment(tmp_path / "active")
    environ = {"VIRTUAL_ENV": str(tmp_path / "active")}
    assert choose(inner, environ=environ).path == active
    configured = environment(tmp_path / "configured")
    assert choose(inner, None, configured, environ).path == configured
    asked = environment(tmp_path / "asked")
    assert choose(inner, asked, configured, environ).path == asked


def test_environments_outside_of_the_project_are_not_taken(tmp_path: Path) -> None:
    environment(tmp_path / ".venv")
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    assert choose(project, environ={}).because == "the Python that runs Inductoscope"


def test_an_active_environment_that_was_deleted_is_passed_over(tmp_path: Path) -> None:
    assert choose(tmp_path, environ={"VIRTUAL_ENV": str(tmp_path / "gone")}).path == sys.executable


def test_a_folder_or_a_command_names_its_python(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    assert choose(tmp_path, str(tmp_path / "env")).path == python
    assert Path(choose(tmp_path, "sh").path).name == "sh"


def test_symbolic_links_are_kept_because_they_make_the_environment(tmp_path: Path) -> None:
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    assert choose(tmp_path, str(link)).path == str(link)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "There is no Python interpreter {} (--python); name an existing one."),
        ("folder", "{} (--python) is a folder without a Python in it; name the file."),
        ("file.txt", "{} (--python) is not executable, so it is no Python interpreter."),
    ],
)
def test_one_that_is_named_and_not_there_is_a_sentence(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").touch()
    path = str(tmp_path / name)
    with pytest.raises(InterpreterError) as caught:
        choose(tmp_path, path)
    assert str(caught.value) == message.format(path)


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_name_is_told_as_such(tmp_path: Path, empty: str) -> None:
    with pytest.raises(InterpreterError, match="--python is empty"):
        choose(tmp_path, empty)
