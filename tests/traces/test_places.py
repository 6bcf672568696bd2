"""Lines of a trace are found where their text stands now."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.server.traces.compilations import Frame, is_user, original_name
from inductoscope.server.traces.places import Places

SOURCE = """import torch


class Block:
    def forward(self, x):
        y = x + 1
        return y


class Other:
    def forward(self, x):
        y = x + 1
        return y * 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "model.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def test_a_line_that_is_where_it_was(file: Path) -> None:
    places = Places(file.parent)
    place = places.of(Frame(str(file), 6, "forward", "y = x + 1"))
    assert (place.line, places.moved, places.lost) == (6, set(), set())
    assert places.columns(place) == (8, 17)


def test_a_line_that_moved_is_found_by_its_text_nearest_to_where_it_was(file: Path) -> None:
    file.write_text("# new\n# lines\n" + SOURCE)
    places = Places(file.parent)
    assert places.of(Frame(str(file), 12, "forward", "y = x + 1")).line == 14
    assert places.of(Frame(str(file), 6, "forward", "y = x + 1")).line == 8
    assert len(places.moved) == 2


def test_a_line_that_is_gone_stays_and_is_counted(file: Path) -> None:
    places = Places(file.parent)
    assert places.of(Frame(str(file), 6, "forward", "y = x - 1")).line == 6
    assert len(places.lost) == 1


def test_functions_are_found_by_name_and_told_with_their_class(file: Path) -> None:
    file.write_text("#\n" + SOURCE)
    places = Places(file.parent)
    first, second = (places.function(Frame(str(file), line, "forward")) for line in (5, 11))
    assert [places.title(place) for place in (first, second)] == ["Block.forward", "Other.forward"]
    assert places.owner(Frame(str(file), 13, "forward", resumed=True)) == "Other.forward"


def test_a_decorated_function_begins_at_its_decorator(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("import torch\n\n\n@torch.compile\ndef f(x):\n    return x\n")
    places = Places(tmp_path)
    assert places.title(places.function(Frame(str(file), 4, "f"))) == "f"
    assert places.function(Frame(str(file), 4, "f")).line == 4


@pytest.mark.parametrize("name", ["/srv/work/project/model.py", r"C:\work\project\model.py", "/elsewhere/model.py"])
def test_a_file_of_another_machine_is_found_by_the_end_of_its_path(name: str, file: Path) -> None:
    folder = file.parent if name.startswith("/elsewhere") else file.parent.parent
    places = Places(folder)
    assert places.of(Frame(name, 6, "forward", "y = x + 1")).file == str(file)


def test_a_file_with_the_same_name_and_another_content_is_not_taken(file: Path) -> None:
    places = Places(file.parent)
    assert places.of(Frame("/srv/model.py", 6, "forward", "something else")).file == "/srv/model.py"


def test_a_file_that_is_no_python_any_more(file: Path) -> None:
    file.write_text("def (:\n")
    places = Places(file.parent)
    assert places.function(Frame(str(file), 5, "forward")).line == 5


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/user/project/train.py", True),
        ("/usr/lib/python3.11/contextlib.py", False),
        ("/home/user/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", False),
        (r"C:\Python311\Lib\site-packages\torch\_dynamo\eval_frame.py", False),
        ("/tmp/torchinductor_me/ab/cab.py", False),
        ("<eval_with_key>.3", False),
        ("", False),
    ],
)
def test_whose_file_it_is(file: str, expected: bool) -> None:
    assert is_user(file) is expected


def test_names_of_what_follows_breaks() -> None:
    assert original_name("torch_dynamo_resume_in_torch_dynamo_resume_in_forward_at_3_at_7") == ("forward", True)
    assert original_name("forward") == ("forward", False)
