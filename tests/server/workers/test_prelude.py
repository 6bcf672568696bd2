"""What may be imported before a program runs: texts in a folder, nothing is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.server.workers import prelude
from inductoscope.server.workers.prelude import Prelude


def found(folder: Path, edited: tuple[str, ...] = (), **files: str) -> Prelude:
    """The prelude of `model.py`; a double underscore in a name stands for a folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    texts = {str(path): path.read_text() for path in folder.rglob("*.py")}
    held = {str(folder / one) for one in edited}
    return prelude.of(str(folder / "model.py"), texts.get, (), held)


def test_installed_packages_are_found_through_the_program_s_own_files(tmp_path: Path) -> None:
    one = found(tmp_path, model="import os\nimport helper\nimport einops\n", helper="from timm import layers\n")
    assert one == Prelude(("timm", "einops"), ("helper", "einops"))


def test_what_torch_brings_and_the_standard_library_are_no_reason_for_a_layer(tmp_path: Path) -> None:
    assert found(tmp_path, model="import torch, json\nfrom torch import nn\nimport numpy as np\n") == Prelude((), ())


@pytest.mark.parametrize(
    "first",
    [
        "import os\nos.environ['A'] = '1'",
        "torch.set_default_dtype(torch.float64)",
        "print('hello')",
        "x = compute()",
        "with open('f') as f:\n    pass",
        "for i in range(3):\n    pass",
        "try:\n    import a\nexcept ImportError:\n    pass",
        "@register\ndef f():\n    pass",
        "@register\nclass A:\n    pass",
        "class A(metaclass=M):\n    pass",
        "class A:\n    x = compute()",
        "def f(x=compute()):\n    pass",
        "if FLAG:\n    import a",
        "import sys\nsys.path.insert(0, 'x')",
        "PATH = os.environ",
        "not python (",
    ],
)
def test_nothing_is_taken_past_a_statement_that_does_something(tmp_path: Path, first: str) -> None:
    assert found(tmp_path, model=f"import before\n{first}\nimport after\n").installed in (("before",), ())


@pytest.mark.parametrize(
    "first",
    [
        '"""Docs."""\nfrom __future__ import annotations',
        "N = 3\nSIZES: dict[str, int] = {'a': N * 2}",
        "class A(nn.Module):\n    k = 3\n    def forward(self, x):\n        return compute(x)",
        "@dataclasses.dataclass(frozen=True)\nclass A:\n    x: int = 3",
        "if TYPE_CHECKING:\n    from a import b",
        "if __name__ == '__main__':\n    main()",
        "T = TypeVar('T')\nlog = logging.getLogger(__name__)",
    ],
)
def test_definitions_are_passed(tmp_path: Path, first: str) -> None:
    assert found(tmp_path, model=f"{first}\nimport after\n").installed == ("after",)


def test_a_file_that_is_edited_is_followed_and_not_imported(tmp_path: Path) -> None:
    files = {
        "model": "import far\nimport near\n",
        "far": "import a\n",
        "near": "import b\nimport deep\n",
        "deep": "import c",
    }
    assert found(tmp_path, **files).own == ("far", "near")
    assert found(tmp_path, ("deep.py",), **files).own == ("far", "b", "c")
    assert found(tmp_path, ("far.py",), **files).own == ("a", "near")


def test_a_file_that_does_something_when_it_is_imported_is_not(tmp_path: Path) -> None:
    one = found(tmp_path, model="import helper\nimport late\n", helper="import early\nTABLE = compute()\n")
    assert one == Prelude(("early",), ("early",))


def test_modules_of_a_package_are_named_in_full(tmp_path: Path) -> None:
    files = {"pkg____init__": "", "pkg__parts": "import a", "model": "from pkg import parts\nimport pkg.parts\n"}
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    del files["pkg____init__"]
    assert found(tmp_path, **files).own == ("pkg", "pkg.parts")


def test_a_package_that_imports_the_program_is_not_imported_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .model import Model\n")
    assert found(folder, model="from .parts import x\n", parts="import a\n") == Prelude(("a",), ("a",))


def test_circles_come_to_an_end(tmp_path: Path) -> None:
    assert found(tmp_path, model="import a\n", a="import b\n", b="import a\nimport model\nimport far\n").installed == (
        "far",
    )
