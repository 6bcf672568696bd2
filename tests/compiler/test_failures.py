import runpy
import sys
from pathlib import Path

import pytest

from inductoscope.compiler import failures
from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Place

HERE = Place(__file__, 1)


def is_user(file: str) -> bool:
    return file == __file__


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def _while_running(error: BaseException) -> Failure:
    try:
        raise error
    except BaseException as caught:
        return failures.while_running(caught, "Model.forward", HERE, is_user)


LINE = _while_running.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ValueError("wrong\n\nwhile executing ..."), FailureKind.RUN, "ValueError: wrong."),
        (ValueError(), FailureKind.RUN, ": ValueError."),
        (SpeechlessError(), FailureKind.RUN, ": SpeechlessError."),
        (RuntimeError("[enforce fail] can't allocate memory: you tried"), FailureKind.RUN, "smaller"),
        (SystemExit(), FailureKind.RUN, "sys.exit()"),
        (SystemExit("bye"), FailureKind.RUN, "sys.exit('bye')"),
        (KeyboardInterrupt(), FailureKind.RUN, "interrupted"),
        (MemoryError(), FailureKind.RUN, "smaller example inputs"),
        (RuntimeError("[enforce fail] not enough memory: you tried to allocate 8 GB"), FailureKind.RUN, "smaller"),
        (RecursionError("maximum depth"), FailureKind.RUN, "without an end"),
        (AssertionError("Torch not compiled with CUDA enabled"), FailureKind.DEVICE, "--device sim:H200"),
        (RuntimeError("Found no NVIDIA driver on your system."), FailureKind.DEVICE, "--device sim:H200"),
    ],
)
def test_what_a_program_raises_becomes_a_sentence_at_its_line(
    error: BaseException, kind: FailureKind, words: str
) -> None:
    failure = _while_running(error)
    assert failure.kind is kind
    assert words in failure.message
    assert f"line {LINE} of test_failures.py" in failure.message
    assert "Traceback" not in failure.message
    assert "Traceback" in failure.details
    assert failure.place is not None
    assert (failure.place.line, failure.place.column) == (LINE, 8)


def test_without_a_user_line_the_fallback_is_the_place() -> None:
    failure = failures.while_running(ValueError("x"), "Model.forward", HERE, is_user)
    assert failure.place is not None
    assert failure.place.line == 1


def test_an_exception_that_comes_up_unexpectedly_is_the_programs_where_its_code_raised_it() -> None:
    def raising(error: Exception) -> None:
        raise error

    with pytest.raises(ValueError, match="from a property") as raised:
        raising(ValueError("from a property"))
    caught = raised.value
    failure = failures.escaped(caught, "Model.forward", is_user)
    assert failure is not None and failure.kind is FailureKind.RUN
    assert "Model.forward raises an error of its own at line" in failure.message
    assert failures.escaped(caught, "Model.forward", lambda _: False) is None
    assert failures.escaped(ValueError("never raised"), "Model.forward", is_user) is None


def test_a_package_that_lacks_a_part_is_not_told_to_be_installed() -> None:
    error = ModuleNotFoundError("No module named 'json.nothing'", name="json.nothing")
    failure = failures.at_import(error, __file__, is_user)
    assert "has no such part" in failure.message
    assert "pip install" not in failure.message


@pytest.mark.parametrize(
    ("name", "package"), [("cv2", "opencv-python"), ("nowhere_to_be_found", "nowhere_to_be_found")]
)
def test_a_missing_package_is_named_as_it_is_installed(name: str, package: str) -> None:
    error = ModuleNotFoundError(f"No module named {name!r}", name=name)
    message = failures.at_import(error, __file__, is_user).message
    assert f"{sys.executable} -m pip install {package}" in message


def _at_import(folder: Path, text: str) -> Failure:
    file = folder / "script.py"
    file.write_text(text)
    try:
        runpy.run_path(str(file))
    except BaseException as error:
        return failures.at_import(error, str(file), lambda name: Path(name).parent == folder)
    raise AssertionError("the script went through")


def test_a_script_that_wants_arguments_is_told_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py"])
    text = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--data', required=True)\n"
    failure = _at_import(tmp_path, text + "options = parser.parse_args()\n")
    assert failure.place is not None and failure.place.line == 4
    assert "the following arguments are required: --data" in failure.message and "__main__" in failure.message


def test_a_script_that_does_its_work_when_imported_is_told_at_the_statement_that_does_it(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("def download():\n    raise OSError('no network')\n")
    text = "import sys\nsys.path.insert(0, {!r})\nimport data\n\nrows = data.download()\n"
    failure = _at_import(tmp_path, text.format(str(tmp_path)))
    assert failure.place is not None and (Path(failure.place.file).name, failure.place.line) == ("script.py", 5)
    assert "line 2 of data.py: OSError: no network. Line 5 of script.py led there. Put what runs" in failure.message


def test_an_error_in_a_definition_is_no_matter_of_running(tmp_path: Path) -> None:
    failure = _at_import(tmp_path, "x = 1\n\ndef f(x=1 / 0):\n    return x\n")
    assert failure.place is not None and failure.place.line == 3
    assert "ZeroDivisionError" in failure.message and "__main__" not in failure.message
