from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from inductoscope.server import imports, meaning
from inductoscope.server.graph import FILE_LIMIT, Dependencies, as_of


def workspace(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(path: str) -> str | None:
    file = Path(path)
    return file.read_text() if file.is_file() else None


def reached(folder: Path, start: str, *roots: str) -> set[str]:
    found = Dependencies(read).closure(str(folder / start), tuple(str(folder / root) for root in roots))
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
        ("import broken", {"broken.py"}),
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
    assert set(Dependencies({"/m.py": "from ..... import x"}.get).closure("/m.py", ())) == {"/m.py"}


def program(text: str, **others: str) -> str:
    """The name of a program of one file, and others beside it."""
    return meaning.program({name: meaning_of(source) for name, source in {"m": text, **others}.items()})


def meaning_of(text: str) -> meaning.Meaning:
    return Dependencies({"/m.py": text}.get).closure("/m.py", ())["/m.py"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x = 1\n", "# why\n\nx  =  1  # one\n", id="comments and layout"),
        pytest.param("def f():\n  'a'\n  return 1", "def f():\n  'b'\n\n  return 1", id="docstring"),
        pytest.param("def f():\n  return 1", "def f():\n  'b'\n  return 1", id="new docstring"),
        pytest.param("'a'\nclass A:\n  'a'\n  x = 1", "class A:\n  'b'\n  x = 1", id="module and class"),
        pytest.param("@torch.compile(mode=m)\ndef f():\n  'a'\n  g()", "@torch.compile(mode=m)\ndef f():\n  g()",
                     id="decorated by torch"),
        pytest.param("class A:\n  @property\n  def f(s):\n    'a'\n    1", "class A:\n  @property\n  def f(s):\n    1",
                     id="property"),
    ],
)  # fmt: skip
def test_what_does_not_change_the_meaning(before: str, after: str) -> None:
    assert program(before) == program(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x = 1", "x = 2", id="code"),
        pytest.param("x = 'a'", "x = 'b'", id="a text that is no docstring"),
        pytest.param("def f():\n  'a'\nx = f.__doc__", "def f():\n  'b'\nx = f.__doc__", id="read"),
        pytest.param("'a'\nx = len(__doc__)", "'b'\nx = len(__doc__)", id="the module's"),
        pytest.param("'a'\nx = globals()['__doc__']", "'b'\nx = globals()['__doc__']", id="by name"),
        pytest.param("from doctest import r\ndef f():\n  'a'", "from doctest import r\ndef f():\n  'b'", id="doctest"),
        pytest.param("@triton.jit\ndef f():\n  'a'\n  g()", "@triton.jit\ndef f():\n  'b'\n  g()", id="decorated"),
        pytest.param("x = ", "x = (", id="no Python"),
    ],
)  # fmt: skip
def test_what_changes_the_meaning(before: str, after: str) -> None:
    assert program(before) != program(after)


def test_a_docstring_counts_when_another_file_of_the_program_reads_documentation() -> None:
    reader = "import inspect\ndef show(f): print(inspect.getdoc(f))"
    one, two = "def f():\n  'a'\n  g()", "def f():\n  'b'\n  g()"
    assert program(one, lib="x = 1") == program(two, lib="x = 1")
    assert program(one, lib=reader) != program(two, lib=reader)


class Workspace:
    """Files on disk, and how often each was read."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        self.reads: list[str] = []
        workspace(folder, files)
        self.graph = Dependencies(self._read)

    def _read(self, path: str) -> str | None:
        self.reads.append(Path(path).name)
        return read(path)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        self.graph.changed([self.path(name)])

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()
        self.graph.changed([self.path(name)])

    def reached(self, name: str = "model.py") -> set[str]:
        return self._names(self.graph.closure(self.path(name), (str(self.folder),)))

    def program(self) -> str:
        return meaning.program(self.graph.closure(self.path("model.py"), (str(self.folder),)))

    def dependents(self, *names: str) -> set[str]:
        return self._names(self.graph.dependents(map(self.path, names)))

    def _names(self, paths: Iterable[str]) -> set[str]:
        return {str(Path(path).relative_to(self.folder)) for path in paths}


CHAIN = {"model.py": "import lib", "lib.py": "import deep", "deep.py": "x = 1", "other.py": "import deep"}


def test_files_are_read_once_until_they_change(tmp_path: Path) -> None:
    w = Workspace(tmp_path, CHAIN)
    before = w.program()
    assert w.program() == before and sorted(w.reads) == ["deep.py", "lib.py", "model.py"]
    w.reads.clear()
    w.write("deep.py", "x = 2")
    assert w.program() != before and set(w.reads) == {"deep.py"}


def test_who_depends_on_a_file(tmp_path: Path) -> None:
    w = Workspace(tmp_path, CHAIN)
    w.reached("model.py"), w.reached("other.py")
    assert w.dependents("deep.py") == {"deep.py", "lib.py", "model.py", "other.py"}
    assert w.dependents("lib.py") == {"lib.py", "model.py"}
    assert w.dependents("nowhere.py") == set()


def test_edges_follow_the_text(tmp_path: Path) -> None:
    w = Workspace(tmp_path, CHAIN)
    w.reached()
    w.write("lib.py", "x = 1")
    assert w.reached() == {"model.py", "lib.py"} and w.dependents("deep.py") == {"deep.py"}


def test_files_that_come_and_go(tmp_path: Path) -> None:
    w = Workspace(tmp_path, {"model.py": "import lib\nfrom pkg import a", "pkg/__init__.py": ""})
    without = w.program()
    assert w.reached() == {"model.py", "pkg/__init__.py"}
    w.write("lib.py", "x = 1")
    w.write("pkg/a.py", "")
    assert w.reached() == {"model.py", "lib.py", "pkg/__init__.py", "pkg/a.py"} and w.program() != without
    w.remove("lib.py")
    w.remove("pkg/a.py")
    assert w.program() == without
    assert w.path("lib.py") in w.graph.files, "it may come back"


def test_cycles_end(tmp_path: Path) -> None:
    w = Workspace(tmp_path, {"model.py": "import a", "a.py": "import b", "b.py": "import a, model"})
    assert w.reached() == {"model.py", "a.py", "b.py"}
    assert w.dependents("b.py") == {"model.py", "a.py", "b.py"}


def test_what_a_run_imported_counts_like_what_was_read(tmp_path: Path) -> None:
    w = Workspace(tmp_path, {"model.py": "load('plugin')", "plugin.py": "import deep", "deep.py": "", "next.py": ""})
    model = w.path("model.py")
    w.reached()
    w.graph.learn(model, [model, w.path("plugin.py")])
    assert w.reached() == {"model.py", "plugin.py", "deep.py"}
    w.graph.learn(model, [w.path("next.py"), w.path("made_by_the_run.py")])
    assert w.reached() == {"model.py", "next.py"} and w.path("made_by_the_run.py") not in w.graph.files


def test_the_closure_of_a_run_is_what_was_known_when_it_began() -> None:
    old, new, plugin = meaning_of("x = 1"), meaning_of("x = 2"), meaning_of("y = 1")
    assert as_of({"m": old}, {"m": new, "plugin": plugin}) == {"m": old, "plugin": plugin}


def test_only_what_is_of_interest_is_kept(tmp_path: Path) -> None:
    w = Workspace(tmp_path, CHAIN)
    w.reached("model.py"), w.reached("other.py")
    w.graph.retain([w.path("other.py")])
    assert w._names(w.graph.files) == {"other.py", "deep.py"}


def test_the_same_import_with_other_roots(tmp_path: Path) -> None:
    workspace(tmp_path, {"src/model.py": "import lib", "a/lib.py": "x = 1", "b/lib.py": "x = 2"})
    graph = Dependencies(read)
    model = str(tmp_path / "src" / "model.py")
    for root in ("a", "b"):
        assert str(tmp_path / root / "lib.py") in graph.closure(model, (str(tmp_path / root),))


def test_a_closure_has_an_end() -> None:
    texts = {"/m.py": ""}
    texts.update({f"/{number}.py": "" for number in range(2 * FILE_LIMIT)})
    graph = Dependencies(texts.get)
    graph.learn("/m.py", texts)
    assert len(graph.closure("/m.py", ())) == FILE_LIMIT


def test_a_file_that_is_gone_is_left_out() -> None:
    texts = {"/m.py": "x = 1\n"}
    graph = Dependencies(texts.get)
    graph.closure("/m.py", ())
    del texts["/m.py"]
    graph.changed(["/m.py"])
    assert graph.closure("/m.py", ()) == {}


def test_networkx_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, inductoscope.server.app as app\n"
        "app.build()\n"
        "print('networkx' in sys.modules, 'watchdog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_a_file_that_says_the_same_is_not_read_as_python_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/w/a.py": "import b\n", "/w/b.py": "x = 1\n"}
    parsed: list[str] = []
    parse = imports.read

    def noted(source: str, path: str) -> imports.Contents:
        parsed.append(path)
        return parse(source, path)

    monkeypatch.setattr(imports, "read", noted)
    dependencies = Dependencies(texts.get)
    dependencies.meanings(texts)
    dependencies.changed_anywhere()
    dependencies.meanings(texts)
    assert parsed == ["/w/a.py", "/w/b.py"]
    texts["/w/b.py"] = "x = 2\n"
    dependencies.changed(["/w/a.py", "/w/b.py"])
    dependencies.meanings(texts)
    assert parsed == ["/w/a.py", "/w/b.py", "/w/b.py"]
