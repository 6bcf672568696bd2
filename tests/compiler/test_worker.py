"""Whole workers, driven by hand over their pipes."""

import signal
import subprocess
import sys
import tempfile
import textwrap
import venv
from pathlib import Path

import pytest

from inductoscope.compiler import worker
from inductoscope.compiler.compat import ahead
from inductoscope.protocol.messages import PROTOCOL, FailureKind, FindingFound, Progress, Run, RungDone, TargetKind
from inductoscope.protocol.report import KernelLanguage, Rung, Status
from support.raw_worker import RawWorker, a_run, do

slow = pytest.mark.slow

RESULT = """
def get_inputs():
    return [torch.randn(4, 8)]
"""


def _file(folder: Path, text: str) -> Path:
    file = folder / "model_under_test.py"
    file.write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text))
    return file


def _function(file: Path, **options: object) -> Run:
    return a_run(file, "f", kind=TargetKind.FUNCTION, **options)


@slow
def test_a_run_from_hello_to_report(tmp_path: Path) -> None:
    file = _file(tmp_path, f"BACKEND = 'eager'\ndef f(x):\n    print(x.sum())\n    return x * 2\n{RESULT}")
    talk = do(_function(file))
    assert (talk.hello.protocol, talk.hello.problem) == (PROTOCOL, None)
    assert talk.hello.torch is not None
    assert talk.exit_code == 0
    report = talk.report
    assert (report.status, report.rung, report.device) == (Status.PARTIAL, Rung.CAPTURE, "cpu")
    assert [one.args for one in report.inputs] == [("f32[4, 8]",)]
    assert [(found.code, found.line) for found in report.findings] == [("graph-break", 5)]
    assert "importing model_under_test.py" in [one.text for one in talk.messages if isinstance(one, Progress)]
    assert [one.rung for one in talk.messages if isinstance(one, RungDone)] == [Rung.CAPTURE]
    assert {"import", "drive"} <= {phase.name for phase in report.phases}
    assert talk.messages[-1].files == (str(file),)


@slow
def test_what_the_program_prints_never_reaches_the_channel(tmp_path: Path) -> None:
    text = f"""
    import atexit, ctypes, os, subprocess, sys, threading
    print("from import")
    subprocess.run(["echo", "from child"])
    os.write(1, b"from descriptor\\n")
    ctypes.CDLL(None).puts(b"from C")
    sys.stdout.write("unflushed")
    threading.Thread(target=lambda: [print("from thread") for _ in range(100)]).start()
    atexit.register(lambda: os.write(2, b"from atexit"))
    STDIN = sys.stdin.read()

    def f(x):
        return x * 2
    {textwrap.indent(RESULT, "    ")}
    """
    talk = do(_function(_file(tmp_path, text)))
    assert talk.report.status is Status.COMPILED
    for words in ("from import", "from child", "from descriptor", "from C", "unflushed", "from thread"):
        assert words in talk.output
    assert "from atexit" not in talk.output


@slow
@pytest.mark.parametrize(
    ("body", "kind", "words", "line"),
    [
        ("import sys; sys.exit(3)", FailureKind.RUN, "ends the program (sys.exit(3) at line 4", 4),
        ("raise KeyError('missing')", FailureKind.RUN, "KeyError: 'missing'", 4),
    ],
)
def test_errors_of_the_program_are_sentences_at_their_line(
    tmp_path: Path, body: str, kind: FailureKind, words: str, line: int
) -> None:
    failure = do(_function(_file(tmp_path, f"def f(x):\n    {body}\n{RESULT}"))).failure
    assert failure.kind is kind
    assert words in failure.message
    assert "Traceback" not in failure.message
    assert failure.place is not None
    assert failure.place.line == line


@slow
def test_a_failure_in_the_second_call_keeps_what_the_first_one_showed(tmp_path: Path) -> None:
    text = """
    def f(x):
        if x is None:
            raise ValueError("no tensor")
        print(x)
        return x

    def get_input_sets():
        return [(torch.ones(2),), (None,)]
    """
    talk = do(_function(_file(tmp_path, text)))
    assert (talk.failure.kind, talk.failure.place.line) == (FailureKind.RUN, 6)
    assert ("graph-break", 7) in [(one.code, one.line) for one in talk.messages[-1].report.findings]
    assert len(talk.messages[-1].report.inputs) == 2


@slow
def test_a_failed_compilation_is_a_finding_and_no_failure_of_the_program(tmp_path: Path) -> None:
    text = f"COMPILE_KWARGS = {{'fullgraph': True}}\ndef f(x):\n    print(x)\n    return x\n{RESULT}"
    report = do(_function(_file(tmp_path, text))).report
    assert report.status is Status.FAILED
    assert report.message
    assert any(finding.line == 5 for finding in report.findings)


@slow
def test_a_program_that_ends_the_process_leaves_the_channel_whole(tmp_path: Path) -> None:
    talk = do(_function(_file(tmp_path, f"import os\ndef f(x):\n    os._exit(7)\n{RESULT}")))
    assert talk.exit_code == 7
    assert isinstance(talk.messages[-1], Progress | FindingFound)


@slow
def test_a_forked_child_of_the_program_does_not_speak(tmp_path: Path) -> None:
    text = f"""
    import os, sys
    if os.fork() == 0:
        sys.exit(0)

    def f(x):
        return x * 2
    {textwrap.indent(RESULT, "    ")}
    """
    talk = do(_function(_file(tmp_path, text)))
    assert talk.report.status is Status.COMPILED


@slow
def test_exercise_makes_the_calls_and_may_use_the_module(tmp_path: Path) -> None:
    text = """
    class Model(nn.Module):
        def forward(self, x, *, scale=1.0):
            return x * scale if self.training else x

    def exercise(fn):
        assert isinstance(fn, nn.Module)
        fn(torch.ones(2, 3))
        fn.eval()
        fn(torch.ones(2, 3), scale=2.0)
    """
    report = do(a_run(_file(tmp_path, text))).report
    assert [(one.origin, one.args) for one in report.inputs] == [
        ("exercise", ("f32[2, 3]",)),
        ("exercise", ("f32[2, 3]", "scale=2.0")),
    ]
    assert len(report.recompiles) == 1
    assert report.recompiles[0].input_set == 1


@slow
def test_exercise_that_calls_nothing_is_told(tmp_path: Path) -> None:
    report = do(_function(_file(tmp_path, "def f(x):\n    return x\ndef exercise(fn):\n    pass\n"))).report
    assert report.status is Status.EAGER
    assert "does not call" in report.message


@slow
def test_unsaved_text_is_what_findings_are_about(tmp_path: Path) -> None:
    file = _file(tmp_path, f"def f(x):\n    return x\n{RESULT}")
    unsaved = f"import torch\n\n\n\ndef f(x):\n    y = x + 1\n    print(y)\n    return y\n{RESULT}"
    report = do(_function(file, overlays={str(file): unsaved})).report
    assert [(finding.code, finding.line) for finding in report.findings] == [("graph-break", 7)]


@slow
def test_a_simulated_gpu_gives_kernels_registers_and_the_places_that_wait(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    text = """
    REQUIRES = "cuda"

    def f(x):
        y = x.softmax(-1)
        if y.sum() > 0:
            y = y + 1
        return y

    def exercise(fn):
        fn(torch.ones(4, 8, device="cuda"))
    """
    talk = do(_function(_file(tmp_path, text), device="sim:H200", rung=Rung.ASSEMBLE))
    report = talk.report
    assert [one.rung for one in talk.messages if isinstance(one, RungDone)] == [Rung.LOWER, Rung.ASSEMBLE]
    assert (report.rung, report.status, report.inputs[0].args) == (Rung.ASSEMBLE, Status.PARTIAL, ("f32[4, 8]",))
    assert ("device-sync", 8) in [(finding.code, finding.line) for finding in report.findings]
    assert len(report.kernels) >= 2
    for kernel in report.kernels:
        assert kernel.language is KernelLanguage.TRITON
        assert kernel.resources is not None
        assert kernel.resources.registers > 0
        assert kernel.predicted is not None


@slow
def test_a_file_for_gpus_says_which_device_to_use(tmp_path: Path) -> None:
    talk = do(_function(_file(tmp_path, f"REQUIRES = 'cuda'\ndef f(x):\n    return x\n{RESULT}")))
    assert talk.failure.kind is FailureKind.DEVICE
    assert "--device sim:H200" in talk.failure.message


@slow
def test_an_unknown_dynamo_setting_is_told(tmp_path: Path) -> None:
    text = f"DYNAMO_CONFIG = {{'no_such_setting': 1}}\ndef f(x):\n    return x\n{RESULT}"
    failure = do(_function(_file(tmp_path, text))).failure
    assert "DYNAMO_CONFIG sets no_such_setting" in failure.message


@slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def __getattr__(name):\n    raise ValueError(name)\n", "raises an error of its own at line"),
        (
            "class Opaque:\n    def __call__(self, x): ...\n    def __getattr__(self, name):\n"
            "        raise ValueError(name)\nf = Opaque()\n",
            "ValueError",
        ),
        ("DYNAMO_CONFIG = {1: 2}\n", "DYNAMO_CONFIG sets 1"),
        ("DYNAMO_CONFIG = {'recompile_limit': 'many'}\n", "recompile_limit to 'many'"),
    ],
)
def test_objects_and_settings_that_are_not_what_they_should_be_are_no_defect_of_ours(
    tmp_path: Path, text: str, words: str
) -> None:
    failure = do(_function(_file(tmp_path, f"def f(x):\n    return x\n{RESULT}{text}"))).failure
    assert failure.kind is not FailureKind.INTERNAL
    assert words in failure.message


@slow
def test_a_program_that_closes_all_descriptors_is_told_apart_from_a_server_that_is_gone(tmp_path: Path) -> None:
    talk = do(_function(_file(tmp_path, "import os\nos.closerange(3, 2000)\n")))
    assert talk.exit_code == 4
    assert "closed file descriptors that it did not open" in talk.output


@slow
def test_without_a_folder_for_temporary_files_the_hello_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import tempfile; tempfile._candidate_tempdir_list = lambda: []\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = RawWorker()
    hello = worker.receive()
    worker.hang_up()
    worker.process.wait(timeout=60)
    assert "set TMPDIR" in hello.problem


@slow
def test_the_worker_ends_when_the_server_is_gone_and_leaves_no_folder(tmp_path: Path) -> None:
    text = "import os, time\nos.fork()\ntime.sleep(600)\n"
    waiting = RawWorker()
    busy = RawWorker()
    hello = busy.receive()
    busy.send(_function(_file(tmp_path, text)))
    while isinstance(message := busy.receive(), Progress) and "importing" not in message.text:
        pass
    for one in (waiting, busy):
        one.hang_up()
        assert one.process.wait(timeout=60) == -signal.SIGKILL
        assert one.process.stdout.read() is not None  # ends when no child of the program holds it any more
    folders = Path(tempfile.gettempdir()).glob(f"inductoscope-worker-{hello.pid}-*")
    assert not list(folders)


def test_an_interpreter_without_torch_says_what_to_install(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = RawWorker(str(tmp_path / "bare" / "bin" / "python"))
    hello = bare.receive()
    bare.hang_up()
    bare.process.wait(timeout=60)
    assert hello.torch is None
    assert "has no torch" in hello.problem
    assert str(tmp_path / "bare") in hello.problem


def test_an_old_python_is_refused_in_a_frame_that_the_protocol_understands() -> None:
    program = (
        "import os, sys; from inductoscope.compiler import bootstrap;"
        "from inductoscope.protocol import frames, messages;"
        "r, w = os.pipe(); bootstrap.OLDEST = (9, 9); bootstrap.refuse_old_python(w); os.close(w);"
        "hello = messages.from_wire(frames.Channel(os.fdopen(r, 'rb'), None).receive());"
        "assert hello.protocol == messages.PROTOCOL; print(hello.problem)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "needs Python 9.9 or newer" in said
    assert ".".join(map(str, sys.version_info[:3])) in said


def test_a_worker_that_is_wanted_stops_importing_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("first_imported_ahead", "second_imported_ahead")
    for name in names:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ahead, "_USED_LATER", names)
    worker.import_more(lambda: names[0] in sys.modules)
    assert [name in sys.modules for name in names] == [True, False]
