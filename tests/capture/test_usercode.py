"""Which files are the user's, and how stacks are read."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest

from inductoscope.compiler import scratch, usercode
from inductoscope.compiler.usercode import Frame, UserCode

SITE = str(Path(sysconfig.get_path("purelib")) / "package" / "module.py")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (__file__, True),
        ("/project/model.py", True),
        (json.__file__, False),
        (SITE, False),
        ("/usr/lib/python3/dist-packages/module.py", False),
        (usercode.__file__, False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
        ("", False),
    ],
)
def test_whose_file_it_is(file: str, expected: bool) -> None:
    assert UserCode().is_user(file) is expected


def test_modules_that_the_compiler_writes_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in scratch.CACHE_VARIABLES:
        monkeypatch.setenv(variable, str(tmp_path / "worker" / variable))
    usercode._library_folders.cache_clear()
    generated = [str(tmp_path / "worker" / name / "ab" / "cab.py") for name in scratch.CACHE_VARIABLES]
    assert not any(map(UserCode().is_user, generated))
    assert UserCode().is_user(str(tmp_path / "model.py"))
    usercode._library_folders.cache_clear()


def test_an_installed_file_that_is_edited_is_the_users() -> None:
    assert UserCode(also=[SITE]).is_user(SITE)


def test_the_innermost_frame_of_the_user() -> None:
    frames = [Frame("/p/a.py", 1, "main"), Frame("/p/b.py", 2, "helper"), Frame(SITE, 3, "inner")]
    place = UserCode().innermost_user(frames)
    assert place is not None
    assert (place.file, place.line, place.function) == ("/p/b.py", 2, "helper")
    assert UserCode().innermost_user(frames[2:]) is None


def test_resumed_parts_fold_into_their_function() -> None:
    frames = [
        Frame("/p/a.py", 3, "forward"),
        Frame("/p/a.py", 5, "forward", resumed=True),
        Frame(SITE, 9, "call"),
        Frame("/p/a.py", 8, "forward", resumed=True),
        Frame("/p/a.py", 8, "forward"),
    ]
    assert [(frame.line, frame.function) for frame in UserCode().chain(frames)] == [(8, "forward"), (8, "forward")]
