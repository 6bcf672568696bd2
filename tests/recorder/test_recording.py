"""The recorder writes what happens in a program, and the program does not notice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inductoscope.server.traces import reading
from inductoscope.server.traces.process import Process
from recorder.conftest import Run

COMPILING = """
import torch

@torch.compile
def scaled(x, factor, name="text"):
    return x

def main():
    scaled(torch.Tensor(), 2.5)

main()
"""


def processes(records: Path) -> list[Process]:
    sources = reading.read_files(sorted(records.iterdir()))
    return [process for source in sources for process in source.processes.values()]


def test_records_are_those_that_a_trace_has(run: Run, records: Path) -> None:
    assert run(COMPILING, "an argument").stderr.count("inductoscope") == 0
    (process,) = processes(records)
    assert (process.damaged, process.unknown) == (0, {})
    assert (process.torch, process.command[-1]) == ("2.99", "an argument")
    (one,) = process.compilations
    assert [text.payload.text() for text in one.graphs] == ["a graph\n\nof lines"]
    assert process.records["describe_tensor"] == 0


def test_inputs_are_told_without_data(run: Run, records: Path) -> None:
    run(COMPILING)
    (process,) = processes(records)
    (told,) = process.compilations[0].inputs
    assert told["function"] == "scaled"
    tensor: dict[str, Any] = {
        "dtype": "float32",
        "shape": [4, 8],
        "stride": [8, 1],
        "device": "cpu",
        "requires_grad": False,
    }
    assert told["arguments"] == [
        {"name": "x", "how": "positional", "tensor": tensor},
        {"name": "factor", "how": "positional", "value": 2.5},
    ]
    assert (told["called"]["line"], told["called"]["text"]) == (9, "scaled(torch.Tensor(), 2.5)")


def test_limits_and_skipped_functions(run: Run, records: Path) -> None:
    run(COMPILING)
    (process,) = processes(records)
    assert [(one["function"], one["limit"]) for one in process.limits] == [("scaled", "8")]
    assert [(one["function"], one["reason"]) for one in process.skipped] == [("scaled", "it is skipped.")]


def test_the_program_sees_what_it_would_see(run: Run, records: Path) -> None:
    program = """
import json, sys, torch
path = [entry for entry in sys.path if "recorder" in entry]
waiting = [type(finder).__name__ for finder in sys.meta_path if "Waiting" in type(finder).__name__]
print(json.dumps([path, waiting, type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__, sys.argv[1:]]))
print(sys.stdin.read())
sys.exit(7)
"""
    done = run(program, "-x", "--", "y")
    seen = json.loads(done.stdout.splitlines()[0])
    assert seen == [[], [], "SourceFileLoader", "SourceFileLoader", ["-x", "--", "y"]]
    assert done.returncode == 7
    assert list(records.iterdir()) == []


def test_the_users_own_sitecustomize_runs(run: Run, fake: Path) -> None:
    (fake / "sitecustomize.py").write_text("print('the own one')\n")
    done = run("import sitecustomize; print(sitecustomize.__file__)")
    assert done.stdout.splitlines() == ["the own one", str(fake / "sitecustomize.py")]


def test_a_program_without_torch(run: Run, records: Path) -> None:
    done = run("import json; print(1)")
    assert (done.stdout, done.stderr, list(records.iterdir())) == ("1\n", "", [])


def test_torch_that_is_missing_or_fails_is_the_programs_business(run: Run, fake: Path) -> None:
    (fake / "torch" / "__init__.py").write_text("raise ImportError('no driver')\n")
    done = run("try:\n    import torch\nexcept ImportError as error:\n    print(error)")
    assert (done.stdout, done.stderr) == ("no driver\n", "")


def test_children_and_forks_have_files_of_their_own(run: Run, records: Path) -> None:
    program = f"""
import os, subprocess, sys
{COMPILING}
if "child" not in sys.argv:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    if os.fork() == 0:
        main()
        os._exit(0)
    os.wait()
"""
    assert run(program).returncode == 0
    found = processes(records)
    assert len(found) == 3
    assert all(process.damaged == 0 and process.compilations for process in found)


def test_ranks_are_told_by_the_environment(run: Run, records: Path) -> None:
    run(COMPILING, RANK="3")
    (process,) = processes(records)
    assert process.rank == 3
    assert "rank_3" in process.file.name


def test_a_folder_that_cannot_be_written_ends_recording_and_nothing_else(run: Run, records: Path) -> None:
    records.rmdir()
    done = run(COMPILING + "print('done')\n")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.startswith("inductoscope: recording ends here")
    assert done.stderr.count("inductoscope") == 1


def test_it_needs_nothing_but_the_standard_library() -> None:
    import ast

    import inductoscope.compiler

    root = Path(inductoscope.compiler.__path__[0])
    files = [*(root / "recorder").rglob("*.py"), root / "compat" / "live_trace.py"]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(str(node.module))
            roots = {name.partition(".")[0] for name in names}
            assert roots <= set(sys.stdlib_module_names) | {"torch"}, file
