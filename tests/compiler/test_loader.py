import inspect
import linecache
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductoscope.compiler import loader
from inductoscope.compiler.failures import RunFailedError
from inductoscope.protocol.messages import FailureKind


@pytest.fixture(autouse=True)
def _unchanged_imports(tmp_path: Path) -> Iterator[None]:
    path, meta = sys.path[:], sys.meta_path[:]
    yield
    sys.path[:], sys.meta_path[:] = path, meta
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def _load(file: Path, overlays: dict[Path, str] | None = None, search: tuple[Path, ...] = ()) -> object:
    texts = {str(path): textwrap.dedent(text) for path, text in (overlays or {}).items()}
    root = str(file.parents[1])
    return loader.load(str(file), texts, [str(path) for path in search], lambda name: name.startswith(root))


def test_a_file_outside_a_package_is_imported_under_its_stem_and_sees_its_neighbours(tmp_path: Path) -> None:
    _write(tmp_path / "layers_of_mine.py", "SIZE = 3\n")
    file = _write(tmp_path / "model_a.py", "import layers_of_mine\nSIZE = layers_of_mine.SIZE\nNAME = __name__\n")
    module = _load(file)
    assert (module.SIZE, module.NAME, sys.modules["model_a"]) == (3, "model_a", module)


def test_a_file_in_a_package_gets_its_dotted_name_and_relative_imports_work(tmp_path: Path) -> None:
    _write(tmp_path / "outer_pkg/__init__.py", "")
    _write(tmp_path / "outer_pkg/common.py", "SIZE = 4\n")
    _write(tmp_path / "outer_pkg/inner/__init__.py", "")
    file = _write(tmp_path / "outer_pkg/inner/net.py", "from ..common import SIZE\n")
    module = _load(file)
    assert (module.__name__, module.SIZE) == ("outer_pkg.inner.net", 4)


def test_a_package_without_init_is_found_by_its_relative_imports(tmp_path: Path) -> None:
    _write(tmp_path / "plain_folder/common.py", "SIZE = 5\n")
    file = _write(tmp_path / "plain_folder/net.py", "from .common import SIZE\n")
    assert _load(file).__name__ == "plain_folder.net"


def test_a_package_file_may_import_its_neighbours_as_scripts_do(tmp_path: Path) -> None:
    _write(tmp_path / "script_pkg/__init__.py", "")
    _write(tmp_path / "script_pkg/beside_it.py", "SIZE = 6\n")
    file = _write(tmp_path / "script_pkg/net.py", "from beside_it import SIZE\n")
    assert _load(file).SIZE == 6


def test_search_paths_are_importable(tmp_path: Path) -> None:
    _write(tmp_path / "src/found_by_setting.py", "SIZE = 7\n")
    file = _write(tmp_path / "app/model_b.py", "from found_by_setting import SIZE\n")
    assert _load(file, search=(tmp_path / "src",)).SIZE == 7


@pytest.mark.parametrize("stem", ["random", "json", "torch", "__main__"])
def test_a_file_named_like_a_module_in_use_does_not_replace_it(tmp_path: Path, stem: str) -> None:
    before = sys.modules.get(stem)
    module = _load(_write(tmp_path / f"{stem}.py", "MINE = True\n"))
    assert module.MINE
    assert module.__name__ != stem
    assert sys.modules.get(stem) is before


@pytest.mark.parametrize("stem", ["my-model", "2d_conv", "v1.2"])
def test_a_file_whose_name_is_no_identifier_is_loaded(tmp_path: Path, stem: str) -> None:
    assert _load(_write(tmp_path / f"{stem}.py", "MINE = True\n")).MINE


def test_such_a_file_in_a_package_has_relative_imports(tmp_path: Path) -> None:
    _write(tmp_path / "odd_names/__init__.py", "SIZE = 8\n")
    assert _load(_write(tmp_path / "odd_names/my-net.py", "from . import SIZE\n")).SIZE == 8


def test_the_init_file_of_a_package_is_the_package(tmp_path: Path) -> None:
    module = _load(_write(tmp_path / "whole_pkg/__init__.py", "SIZE = 8\n"))
    assert (module.__name__, module.SIZE) == ("whole_pkg", 8)


def test_a_folder_of_the_same_name_does_not_hide_the_file(tmp_path: Path) -> None:
    _write(tmp_path / "double_name/__init__.py", "raise RuntimeError('not this one')\n")
    assert _load(_write(tmp_path / "double_name.py", "MINE = True\n")).MINE


def test_unsaved_text_is_run_and_seen_by_inspect_and_linecache(tmp_path: Path) -> None:
    file = _write(tmp_path / "edited.py", "def f():\n    return 1\n")
    module = _load(file, {file: "\n\ndef f():\n    return 2  # unsaved\n"})
    assert module.f() == 2
    assert module.f.__code__.co_filename == str(file)
    assert "unsaved" in inspect.getsource(module.f)
    linecache.checkcache()
    assert linecache.getline(str(file), 4) == "    return 2  # unsaved\n"


def test_unsaved_text_of_an_imported_module_counts_and_leaves_no_bytecode(tmp_path: Path) -> None:
    helper = _write(tmp_path / "helper_x.py", "SIZE = 1\n")
    file = _write(tmp_path / "uses_helper.py", "from helper_x import SIZE\n")
    assert _load(file, {helper: "SIZE = 2\n"}).SIZE == 2
    assert not list(tmp_path.rglob("helper_x*.pyc"))


def test_a_module_that_was_never_saved_can_be_imported(tmp_path: Path) -> None:
    file = _write(tmp_path / "uses_new.py", "from brand_new import SIZE\n")
    assert _load(file, {tmp_path / "brand_new.py": "SIZE = 9\n"}).SIZE == 9


def test_a_target_that_was_never_saved_can_be_imported(tmp_path: Path) -> None:
    assert _load(tmp_path / "untitled_one.py", {tmp_path / "untitled_one.py": "SIZE = 9\n"}).SIZE == 9


def test_a_module_that_imports_the_target_gets_the_same_module(tmp_path: Path) -> None:
    _write(tmp_path / "looks_back.py", "def owner():\n    import the_target\n    return the_target\n")
    module = _load(_write(tmp_path / "the_target.py", "import looks_back\n"))
    assert module.looks_back.owner() is module


def test_the_closure_holds_the_users_files_only(tmp_path: Path) -> None:
    helper = _write(tmp_path / "closure_helper.py", "")
    file = _write(tmp_path / "closure_model.py", "import closure_helper, json\n")
    _load(file)
    assert loader.closure(lambda name: name.startswith(str(tmp_path))) == tuple(sorted([str(file), str(helper)]))


def _failure(file: Path, overlays: dict[Path, str] | None = None):
    with pytest.raises(RunFailedError) as caught:
        _load(file, overlays)
    return caught.value.failure


def test_a_syntax_error_is_placed_on_its_column(tmp_path: Path) -> None:
    failure = _failure(_write(tmp_path / "broken.py", "x = 1\ny = (1 +\n"))
    assert failure.kind is FailureKind.SYNTAX
    assert (failure.place.line, failure.place.column) == (2, 4)
    assert "broken.py is not valid Python" in failure.message
    assert "Traceback" not in failure.message


def test_a_syntax_error_in_another_file_is_placed_there(tmp_path: Path) -> None:
    helper = _write(tmp_path / "broken_helper.py", "def f(:\n")
    failure = _failure(_write(tmp_path / "uses_broken.py", "import broken_helper\n"))
    assert (failure.kind, failure.place.file, failure.place.line) == (FailureKind.SYNTAX, str(helper), 1)


def test_a_missing_package_says_what_to_install_and_which_line_wants_it(tmp_path: Path) -> None:
    failure = _failure(_write(tmp_path / "wants_sklearn.py", "import torch\n\nfrom sklearnx_missing.svm import SVC\n"))
    assert failure.kind is FailureKind.IMPORT
    assert "line 3 of wants_sklearn.py" in failure.message
    assert "pip install sklearnx_missing" in failure.message
    assert failure.place.line == 3


def test_a_missing_module_of_the_project_asks_for_a_search_path(tmp_path: Path) -> None:
    _write(tmp_path / "project_part/__init__.py", "")
    failure = _failure(_write(tmp_path / "app/deep/wants_part.py", "import project_part\n"))
    assert "search paths" in failure.message
    assert "pip install" not in failure.message


def test_an_error_at_import_names_the_users_line(tmp_path: Path) -> None:
    failure = _failure(_write(tmp_path / "fails.py", "import json\njson.loads('{')\n"))
    assert failure.kind is FailureKind.IMPORT
    assert (failure.place.line, failure.place.end_column) == (2, 15)
    assert "JSONDecodeError" in failure.message
    assert "Traceback" in failure.details


def test_a_script_that_exits_at_import_is_told_about_the_main_guard(tmp_path: Path) -> None:
    failure = _failure(_write(tmp_path / "script.py", "import sys\nsys.exit(2)\n"))
    assert "sys.exit(2)" in failure.message
    assert "__main__" in failure.message


def test_a_package_name_that_is_taken_is_a_failure_that_names_both(tmp_path: Path) -> None:
    _write(tmp_path / "json/__init__.py", "")
    failure = _failure(_write(tmp_path / "json/mine.py", ""))
    assert failure.kind is FailureKind.IMPORT
    assert "'json' is already loaded from" in failure.message
