from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.server.imports import Imports


def workspace(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(path: str) -> str | None:
    file = Path(path)
    return file.read_text() if file.is_file() else None


def reached(folder: Path, start: str, *roots: str) -> set[str]:
    found = Imports(read).closure(str(folder / start), tuple(str(folder / root) for root in roots))
    return {str(Path(path).relative_to(folder)) for path in found}


@pytest.mark.parametrize(
    ("text", "also"),
    [
        ("import lib", {"lib.py"}),
        ("import pkg.inner", {"pkg/__init__.py", "pkg/inner.py", "lib.py"}),
        ("from pkg import inner", {"pkg/__init__.py", "pkg/inner.py", "lib.py"}),
        ("from pkg import NAME", {"pkg/__init__.py"}),
        ("from pkg.inner import f", {"pkg/__init__.py", "pkg/inner.py", "lib.py"}),
        ("def f():\n    import lib", {"lib.py"}),
        ("import torch, os.path", set()),
        ("import loop", {"loop.py", "model.py"}),
        ("import broken", set()),
        ("__import__('lib')", set()),
    ],
)
def test_files_reached_from_a_script(tmp_path: Path, text: str, also: set[str]) -> None:
    files = {
        "model.py": text,
        "lib.py": "VALUE = 1",
        "loop.py": "import model",
        "broken.py": "def",
        "pkg/__init__.py": "NAME = 1",
        "pkg/inner.py": "import lib",
    }
    workspace(tmp_path, files)
    assert reached(tmp_path, "model.py", ".") == {"model.py"} | also


def test_relative_imports_and_those_from_the_root_of_the_package(tmp_path: Path) -> None:
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/model.py": "from . import near\nfrom .sub import deep\nfrom pkg import far",
        "src/pkg/near.py": "",
        "src/pkg/far.py": "",
        "src/pkg/sub/__init__.py": "",
        "src/pkg/sub/deep.py": "from .. import near",
    }
    workspace(tmp_path, files)
    assert reached(tmp_path, "src/pkg/model.py") == set(files)


def test_a_relative_import_above_the_file_system_reaches_nothing() -> None:
    texts = {"/m.py": "from ..... import x"}
    assert Imports(texts.get).closure("/m.py", ()) == Imports(texts.get).closure("/m.py", ())
    assert set(Imports(texts.get).closure("/m.py", ())) == {"/m.py"}


def test_only_what_changes_the_meaning_changes_the_digest() -> None:
    texts = {"/m.py": "x = 1\n"}
    imports = Imports(texts.get)
    before = imports.closure("/m.py", ())
    texts["/m.py"] = "# why\n\nx  =  1  # one\n"
    assert imports.closure("/m.py", ()) == before
    texts["/m.py"] = "x = 2\n"
    assert imports.closure("/m.py", ()) != before


def test_a_file_that_is_gone_is_forgotten() -> None:
    texts = {"/m.py": "x = 1\n"}
    imports = Imports(texts.get)
    imports.closure("/m.py", ())
    del texts["/m.py"]
    assert imports.closure("/m.py", ()) == {}
