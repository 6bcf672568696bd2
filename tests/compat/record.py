"""Writes down what a version of torch says of the programs here, in the shapes that Inductoscope reads.

usage: PYTHON tests/compat/record.py [--only NAME]...

PYTHON has the torch to record and need not have anything else.  The result is `fixtures/<major>.<minor>.json`:

    torch, triton, python   the versions
    points                  for each part of torch that is used: "called", "present" (no program here leads to it) or
                            "absent"
    graph_break_ids         torch's ids by type of graph break, of the types met here
    programs                for each program: `records` of the structured trace (metadata and payload as torch hands
                            them out), `breaks` (the exceptions behind graph breaks), `guards` (conditions of the tree
                            that is checked), `skips`, `limits` (arguments of the log record), `error` (what reached
                            the program), `report` (what Inductoscope made of it)

Paths are replaced by <torch>, <program>, <python> and <site>; times and addresses by 0.
"""

from __future__ import annotations

import argparse
import functools
import importlib.machinery
import importlib.util
import json
import logging
import os
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"

RECORDS = frozenset(
    (
        "str",
        "dynamo_start",
        "dynamo_error",
        "dynamo_graph_break_reason",
        "recompile_reasons",
        "symbolic_shape_specialization",
        "compilation_metrics",
    )
)
"""The records that Inductoscope reads, and the table of file names that they refer to."""

GPU = "sim:H200"
SIMULATED = ("inferred", "trained", "replayed")
"""Programs that are run for a simulated GPU too, as `NAME on sim:H200`."""

WHAT_IF = {"sizes_change": ("x=f32[5, 7]", "x=f32[9, 6]")}
"""Calls that are asked about after the run of a program: would they be compiled again?"""

METRICS = ("is_forward", "entire_frame_compile_time_s", "backend_compile_time_s", "graph_op_count", "compile_id")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}|\b\d{13,}\b")


def main() -> int:
    """Record the torch of this interpreter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--out", type=Path, help="the file to write; fixtures/<major>.<minor>.json if not given")
    options = parser.parse_args()
    make_namespace()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        fixture = record([path for path in sorted(PROGRAMS.glob("*.py")) if path.stem in (options.only or [path.stem])])
    series = ".".join(fixture["torch"].split(".")[:2])
    out = options.out or HERE / "fixtures" / f"{series}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(_written(fixture) + "\n", encoding="utf-8")
    failed = [name for name, found in fixture["programs"].items() if "report" not in found]
    print(f"{out}: {len(fixture['programs'])} programs, failed: {failed or 'none'}")
    return 1 if failed else 0


def _written(fixture: Mapping[str, Any]) -> str:
    """The fixture as JSON, with a line for each thing that was recorded."""
    programs = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(key)}: {_lines_of(value)}" for key, value in sorted(found.items()))
        + "\n}"
        for name, found in sorted(fixture["programs"].items())
    ]
    head = {key: value for key, value in fixture.items() if key != "programs"}
    text = json.dumps(head, indent=1, sort_keys=True).removesuffix("\n}")
    return text + ',\n "programs": {\n' + ",\n".join(programs) + "\n}\n}"


def _lines_of(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(item, sort_keys=True)}" for item in value) + "\n ]"
    return json.dumps(value, sort_keys=True)


def make_namespace() -> None:
    """Make `inductoscope` importable from this repository, whether or not it is installed."""
    spec = importlib.machinery.ModuleSpec("inductoscope", None, is_package=True)
    spec.submodule_search_locations = [str(ROOT / part / "inductoscope") for part in ("protocol", "compiler")]
    sys.modules["inductoscope"] = importlib.util.module_from_spec(spec)


def record(programs: list[Path]) -> dict[str, Any]:
    """Run every program in a process of its own."""
    import torch

    from inductoscope.compiler import worker

    worker.import_ahead()
    torch.set_num_threads(1)  # a process with threads cannot be forked safely
    found = {path.stem: in_child(path, "cpu") for path in programs}
    found |= {f"{path.stem} on {GPU}": in_child(path, GPU) for path in programs if path.stem in SIMULATED}
    kinds = {event["kind"] for one in found.values() for event in one.get("breaks", ())}
    called = {point for one in found.values() for point in one.pop("called", ())}
    return {
        "torch": torch.__version__,
        "triton": worker.triton_version(),
        "python": platform.python_version(),
        "points": {name(point): state(point, called) for point in every_point()},
        "graph_break_ids": ids_of(kinds),
        "programs": found,
    }


def ids_of(kinds: set[str]) -> dict[str, str | None]:
    """torch's ids of types of graph breaks."""
    from inductoscope.compiler.compat import dynamo_breaks

    return {kind: dynamo_breaks.break_id(kind) for kind in sorted(kinds)}


def every_point() -> list[Any]:
    """Every part of torch that is replaced or asked for, each once."""
    import pkgutil

    from inductoscope.compiler import compat
    from inductoscope.compiler.compat.inductor import Point

    found: dict[str, Any] = {}

    def take(value: Any) -> None:
        if isinstance(value, Point):
            found.setdefault(name(value), value)
        elif isinstance(value, tuple):
            for item in value:
                take(item)
        elif hasattr(value, "point"):
            take(value.point)

    for module in pkgutil.iter_modules(compat.__path__):
        for value in vars(importlib.import_module(f"{compat.__name__}.{module.name}")).values():
            take(value)
    return [found[key] for key in sorted(found)]


def name(point: Any) -> str:
    """A point as `module:path`."""
    return f"{point.module}:{point.path}"


def state(point: Any, called: set[str]) -> str:
    """What became of a point."""
    if not point.exists():
        return "absent"
    return "called" if name(point) in called else "present"


def in_child(program: Path, device: str) -> dict[str, Any]:
    """Record one program in a forked process; what it found comes back through a file."""
    with tempfile.NamedTemporaryFile("r+", encoding="utf-8") as file:
        child = os.fork()
        if not child:
            status = 1
            try:
                Path(file.name).write_text(json.dumps(Tap(program, device).run()), encoding="utf-8")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        os.waitpid(child, 0)
        text = Path(file.name).read_text(encoding="utf-8")
    return json.loads(text) if text else {}


def target_of(program: Path) -> Any:
    """What a program says is to be compiled, at the line of its `def`."""
    from inductoscope.protocol.messages import Target, TargetKind

    lines = program.read_text(encoding="utf-8").splitlines()
    entry = next((line.split('"')[1] for line in lines if line.startswith("ENTRY")), None)
    start = f"def {entry}(" if entry else "    def forward("
    line = next(number for number, text in enumerate(lines, 1) if text.startswith(start))
    kind = TargetKind.FUNCTION if entry else TargetKind.MODULE_CLASS
    return Target(str(program), entry or "Model.forward", line, kind, entry or "Model")


class Tap:
    """Runs a program as a worker would, and writes down what passes by on the way."""

    def __init__(self, program: Path, device: str) -> None:
        self._program = program
        self._device = device
        self._found: dict[str, Any] = {"records": [], "breaks": [], "guards": [], "skips": [], "limits": []}
        self._called: set[str] = set()

    def run(self) -> dict[str, Any]:
        """Everything that was found."""
        from inductoscope.compiler import pipeline
        from inductoscope.protocol import messages
        from inductoscope.protocol.report import Rung

        said: list[Any] = []
        os.chdir(PROGRAMS)
        with ExitStack() as stack:
            for point in every_point():
                stack.enter_context(self._counted(point))
            stack.enter_context(self._watched())
            asked = WHAT_IF.get(self._program.stem, ())
            run = messages.Run(1, target_of(self._program), self._device, Rung.LOWER, what_if=asked)
            pipeline.run(run, said.append)
        self._found["report"] = self._report(said[-1])
        self._found["called"] = sorted(self._called)
        return self._scrubbed(self._found)

    @contextmanager
    def _counted(self, point: Any) -> Iterator[None]:
        """Notice when torch calls a point, whatever else is put in its place meanwhile."""
        from inductoscope.compiler.compat.inductor import replaced

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def called(*args: Any, **kwargs: Any) -> Any:
                self._called.add(name(point))
                return original(*args, **kwargs)

            return called

        with replaced(point, make):
            yield

    @contextmanager
    def _watched(self) -> Iterator[None]:
        from inductoscope.compiler.compat import dynamo, dynamo_guards, skips

        trace, limits = _Records(self._found["records"]), _Limits(self._found["limits"])
        logging.getLogger("torch.__trace").addHandler(trace)
        logging.getLogger("torch._dynamo.convert_frame").addHandler(limits)
        with (
            dynamo.graph_breaks(self._on_break),
            dynamo_guards.compiled_guards(self._on_guards),
            skips.skipped_frames(self._on_skip),
        ):
            yield

    def _on_break(self, event: Any) -> None:
        frames = [[frame.file, frame.line, frame.function, frame.column] for frame in event.stack]
        kind = event.message.strip().splitlines()[0]
        told = {"kind": kind, "reason": event.reason, "message": event.message, "stack": frames}
        self._found["breaks"].append({**told, "function": event.function, "compile_id": event.compile_id})

    def _on_guards(self, event: Any) -> None:
        for leaf in event.leaves:
            line = leaf.frames[-1].line if leaf.frames else None
            told = {"check": leaf.check, "source": leaf.source, "text": leaf.text, "line": line}
            if told not in self._found["guards"]:
                self._found["guards"].append(told)

    def _on_skip(self, event: Any) -> None:
        if event.code.co_filename == str(self._program):
            self._found["skips"].append({"function": event.code.co_name, "reason": event.reason})

    def _report(self, message: Any) -> dict[str, Any]:
        """The facts of the last message that do not depend on the machine."""
        from inductoscope.protocol import codec

        report = codec.to_json(message.report) or {}
        kept = ("code", "line", "column", "id", "outcome", "guard_family", "message")
        return {
            "end": type(message).__name__,
            "failure": message.failure.message if hasattr(message, "failure") else None,
            "status": report.get("status"),
            "findings": [{key: one.get(key) for key in kept if one.get(key)} for one in report.get("findings", [])],
            "graphs": len(report.get("graphs", [])),
            "stages": sorted({one.get("stage") for one in report.get("fx_graphs", [])}),
            "passes": sorted({one.get("name") for one in report.get("passes", [])}),
            "saved": len(report.get("saved", [])),
            "dimensions": [[one["source"], one["dim"], one["state"]] for one in report.get("dimensions", [])],
            "fusion_groups": [[one["kind"], _lines(one["ops"])] for one in report.get("fusion_groups", [])],
            "kernels": [[one["language"], one["phase"], _lines(one["lines"])] for one in report.get("kernels", [])],
            "phases": sorted({one.get("name") for one in report.get("phases", [])}),
            "what_if": [[one["outcome"], [guard["family"] for guard in one["guards"]]] for one in _asked(report)],
            "cudagraphs": report.get("cudagraphs"),
            "notes": report.get("notes", []),
        }

    def _scrubbed(self, value: Any) -> Any:
        if isinstance(value, str):
            return _ADDRESS.sub("0", self._without_paths(value))
        if isinstance(value, Mapping):
            return {self._scrubbed(key): self._scrubbed(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._scrubbed(item) for item in value]
        return value

    def _without_paths(self, text: str) -> str:
        import torch

        torch_folder = Path(torch.__file__).parent
        for folder, short in (
            (PROGRAMS, "<program>"),
            (ROOT, "<repository>"),
            (torch_folder, "<torch>"),
            (torch_folder.parent, "<site>"),
            (Path(os.__file__).parent, "<python>"),
        ):
            text = text.replace(str(folder), short)
        return text


def _asked(report: Mapping[str, Any]) -> list[Any]:
    return list(report.get("what_if") or ())


def _lines(places: list[Any]) -> list[int]:
    """The lines of the user's that a kernel or a fusion group is of."""
    return sorted({place["line"] for place in places if place.get("line") is not None})


class _Records(logging.Handler):
    """Keeps the records of the structured trace that are read, with their metadata as they are."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__(logging.DEBUG)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        keys = {*metadata, *([metadata["artifact"].get("name")] if "artifact" in metadata else [])}
        if not keys & RECORDS:
            return
        metadata = dict(metadata)
        if "compilation_metrics" in metadata:
            metrics = metadata["compilation_metrics"]
            metadata["compilation_metrics"] = {key: _timeless(metrics[key]) for key in METRICS if key in metrics}
        self._found.append({"metadata": json.loads(json.dumps(metadata, default=str)), "payload": record.payload})


def _timeless(value: Any) -> Any:
    return 0.0 if isinstance(value, float) else value


class _Limits(logging.Handler):
    """Keeps the warnings that say that a limit was hit, as a format and its arguments."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__(logging.WARNING)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple):
            self._found.append({"msg": str(record.msg), "args": [str(argument) for argument in record.args]})


if __name__ == "__main__":
    sys.exit(main())
