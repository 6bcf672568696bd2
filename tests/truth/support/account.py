"""torch's own account of a program, read from its structured trace by way of `tlparse`.

Nothing of Inductoscope is used here: what a record means is worked out again, from torch's text alone.  Where torch
tells one thing several times, or counts something else than its name says, the rule stands in the function's docstring.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
SUPPORT = Path(__file__).parent
_STANDARD = Path(sysconfig.get_path("stdlib"))
CONTEXT = frozenset(
    {
        "rank",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "subgraph_name",
        "has_payload",
        "payload_filename",
        "stack",
        "timestamp",
        "thread",
        "pathname",
        "lineno",
    }
)
OUTCOMES = SPLIT, REST, WHOLE = ("split", "rest-of-function-eager", "whole-function-eager")
_FRAME = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
_PAGE = re.compile(r"/gb/gb(\d+)\.html")
_CHAINED = "*** While handling this graph break, another graph break occurred: ***"
_LIMIT = re.compile(
    r"torch\._dynamo hit config\.\w+ \((?P<limit>\d+)\)\n.*?function: '(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)"
)
_SKIP = re.compile(r"^skipping: (?P<name>\S+) \(reason: .*?, file: (?P<file>[^\n]*)\)$", re.M | re.S)
_LOG_PREFIX = re.compile(r"^[VIWE]\d+ \S+ \d+ \S+\] (\[\S+\] )?", re.M)
_KERNEL_CALL = re.compile(
    r"^ +(?:\w+ = )?((?:cpp|triton)_\w+(?=\(|\.run\()|extern_kernels\.\w+|aten\.[\w.]+"
    r"|torch\.ops\.(?!inductor\b)[\w.]+)\b",
    re.M,
)
REFUSED = "Backend compiler exception"
_VARIABLE = re.compile(r"\b[LG]\['(\w+)'\]")
_IN_DICT = re.compile(r"\.__dict__\['(_(?:modules|parameters|buffers))'\](?=\[)")  # of a module that sets attributes
_TABLE = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")
_MANAGER = re.compile(r"Manager: source=(?P<source>.*?), (?:accessed_by|type)=")
_LEAF = re.compile(r"[| ]*\+- (?P<check>[A-Z][A-Z_]+): (?P<text>.*)$")
_CHECKED_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*?), [\w.]+, DispatchKeySet\(.*?\), (?P<dtype>torch\.\w+), "
    r"device=\w+, requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)"
)
_CHECKED_ID = re.compile(r"___check_(?P<what>type|obj)_id\((?P<source>.*), \d+\)")
_RELATIONS = ("check_no_aliasing(", "check_overlapping(")

Guard = tuple[str, str, str]


@dataclass(frozen=True)
class Place:
    """A line of the user's."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Record:
    """One record: its key, or the name of an artifact; its fields; the text of its payload."""

    name: str
    compile_id: str
    attempt: int
    fields: Any
    payload: str


@dataclass(frozen=True)
class BreakReport:
    """One report of a graph break.  `frames` are the user's, outermost first; `inner` is the innermost of all."""

    compile_id: str
    kind: str
    code: str
    outcome: str
    frames: tuple[Place, ...]
    inner: Place | None


@dataclass(frozen=True)
class Recompile:
    """Why a function was compiled again: for each earlier version the guard, and the user's line that made it."""

    compile_id: str
    function: Place
    guards: tuple[tuple[str, int | None], ...]


def is_user(file: str) -> bool:
    """Whether a file is a program's: neither a library's, nor the product's, nor a driver's of these tests."""
    if file.startswith("<") or "site-packages" in file or "dist-packages" in file:
        return False
    return not any(Path(file).is_relative_to(folder) for folder in (_STANDARD, SUPPORT, REPOSITORY / "compiler"))


class Account:
    """What torch wrote down about one program, from the folder of its run."""

    def __init__(self, folder: Path) -> None:
        self.records = tuple(_records(folder))
        self.log = _LOG_PREFIX.sub("", (folder / "log.txt").read_text(errors="replace"))
        self.answer = json.loads((folder / "answer.json").read_text())

    def named(self, *names: str) -> tuple[Record, ...]:
        """The records of these names, in order."""
        return tuple(record for record in self.records if record.name in names)

    def graphs(self) -> list[tuple[str, int | None]]:
        """Compile id and number of operators of each graph that went to a backend.

        The number is that of the compilation's metrics, which have none where compiling failed afterwards.  A graph
        that the backend sends back, to have a number in it made constant, is traced again under the same id, as a
        further attempt; one that it refuses comes to nothing.  After a reset the ids begin anew.
        """
        metrics = {record.compile_id: record.fields.get("graph_op_count") for record in self.metrics()}
        refused = self.refused()
        found: list[str] = []
        for one in self.named("dynamo_output_graph"):
            again = one.attempt > 0 and one.compile_id in found
            if not again and one.compile_id not in refused:
                found.append(one.compile_id)
        return [(compile_id, metrics.get(compile_id)) for compile_id in found]

    def refused(self) -> set[str]:
        """Compile ids of graphs that a backend refused, of which Dynamo made graph breaks."""
        return {one.compile_id for one in self.named("dynamo_graph_break_reason") if REFUSED in one.payload}

    def metrics(self) -> tuple[Record, ...]:
        """The metrics of each compilation of a function; a backward that is compiled later has its own."""
        return tuple(one for one in self.named("compilation_metrics") if one.fields.get("is_forward") is not False)

    def break_reports(self) -> list[BreakReport]:
        """Every report of a graph break, repeats included; not of graphs that a backend refused.

        Of those torch tells the end of the graph, since tracing stands there, and neither the operator nor its line.
        """
        records, refused = self.named("dynamo_graph_break_reason"), self.refused()
        return [read_break(record) for record in records if record.compile_id not in refused]

    def breaks(self) -> list[tuple[str, int, str, str, str, int]]:
        """File, line, type, id, outcome and number of reports of each root cause.

        torch reports a break once for each frame that meets it: for the caller with the helper inlined, then for the
        helper.  These are one root cause: same type, same line.  A report in a compilation that was split already is
        torch's failing to handle the break before it, and makes the outcome of that one worse.
        """
        causes: dict[tuple[str, int, str, str, Place | None], list[str]] = {}
        last: dict[str, list[str]] = {}
        for one in self.break_reports():
            if one.outcome != SPLIT and one.compile_id in last:
                last[one.compile_id].append(one.outcome)
                continue
            file, line = (one.frames[-1].file, one.frames[-1].line) if one.frames else ("library", 0)
            outcomes = causes.setdefault((file, line, one.kind, one.code, one.inner), [])
            outcomes.append(one.outcome)
            last[one.compile_id] = outcomes
        return sorted((*key[:4], max(found, key=OUTCOMES.index), len(found)) for key, found in causes.items())

    def recompiles(self) -> list[Recompile]:
        """Every attempt to compile again."""
        return [self._recompile(record) for record in self.named("recompile_reasons")]

    def limit(self) -> tuple[int, str, str, int] | None:
        """Limit, function, file and line of the first function that was given up."""
        match = _LIMIT.search(self.log)
        return (int(match["limit"]), _original(match["name"]), match["file"], int(match["line"])) if match else None

    def skipped(self) -> set[tuple[str, str]]:
        """Name and file of the user's functions that were left alone."""
        return {(_original(m["name"]), m["file"]) for m in _SKIP.finditer(self.log) if is_user(m["file"])}

    def guards(self) -> dict[str, Counter[Guard]]:
        """The guards of each compiled version, as the tree has them that is checked at run time."""
        return {one.compile_id: Counter(_guards(one.payload)) for one in self.named("dynamo_cpp_guards_str")}

    def output_code(self) -> dict[str, list[str]]:
        """What Inductor wrote for each compilation: the forward, then the backward where the program asked for one."""
        found: dict[str, list[str]] = {}
        for record in self.named("inductor_output_code"):
            found.setdefault(record.compile_id, []).append(record.payload)
        return found

    def starts(self) -> dict[str, Place]:
        """The function behind each frame number: the last frame of the stack of `dynamo_start`."""
        strings = [text for record in self.named("string_table") for text in record.fields]
        found: dict[str, Place] = {}
        for record in self.named("dynamo_start"):
            last = record.fields["stack"][-1]
            place = Place(strings[last["filename"]], last["line"], _original(last["name"]))
            found.setdefault(record.compile_id.partition("/")[0], place)
        return found

    def _recompile(self, record: Record) -> Recompile:
        function = self.starts()[record.compile_id.partition("/")[0]]
        place = function if is_user(function.file) else Place("library", 0, function.function)
        return Recompile(record.compile_id, place, tuple(map(_read_reason, _texts(record.payload))))


def _records(folder: Path) -> Iterator[Record]:
    """Every record; none where nothing was ever compiled, for then there is no trace."""
    for trace in (folder / "trace").glob("*.log"):
        yield from _parsed(folder, trace)


def _parsed(folder: Path, trace: Path) -> Iterator[Record]:
    out = folder / "tlparse"
    tlparse = Path(sys.executable).with_name("tlparse")
    command = [tlparse, trace, "-o", out, "--overwrite", "--no-browser", "--plain-text"]
    subprocess.run(command, check=True, capture_output=True)
    for line in (out / "raw.jsonl").read_text().splitlines():
        data = json.loads(line)
        name = next(key for key in data if key not in CONTEXT)
        fields = data[name]
        compile_id = f"{data.get('frame_id')}/{data.get('frame_compile_id')}"
        payload = data.get("payload_filename")
        text = (out / payload).read_text() if payload else ""
        name = fields["name"] if name == "artifact" else name
        yield Record(name, compile_id, data.get("attempt", 0), fields, text)


def read_break(record: Record) -> BreakReport:
    """The report of a break in a `dynamo_graph_break_reason` record."""
    head, _, stacks = record.payload.partition("\nUser code traceback:\n")
    reason = head.partition("\nGraph Break Reason: ")[2]
    followed, _, message = (
        reason.partition("\n\n") if reason.startswith(("Encountered", "Failed")) else ("", "", reason)
    )
    outcome = WHOLE if followed.startswith("Failed") else REST if "cannot resume from" in followed else SPLIT
    cause = message.partition(_CHAINED)[0]
    page = _PAGE.search(cause)
    frames = _frames(stacks.partition("\nTraceback (most recent call last):")[0])
    user = user_frames(stacks.partition("\nTraceback (most recent call last):")[0])
    innermost = frames[-1] if frames else None
    inner = innermost if innermost and innermost not in user else None
    kind = message.strip().partition("\n")[0].strip()
    return BreakReport(record.compile_id, kind, f"GB{page[1]}" if page else "", outcome, user, inner)


def kernel_calls(code: str) -> list[str]:
    """The kernels and library functions that a wrapper calls, in order."""
    return _KERNEL_CALL.findall(code.partition("def call(")[2])


def source_of(text: str) -> str:
    """A guarded source in words, the same in every process."""
    return steady(in_words(text))


def in_words(text: str) -> str:
    """A guarded source the way that the program writes it."""
    text = _IN_DICT.sub(r".\1", _VARIABLE.sub(r"\1", text))
    return _TABLE.sub(lambda match: f"[{match[1]}]" if match[1].isdecimal() else f".{match[1]}", text)


def _guards(tree: str) -> Iterator[Guard]:
    """Kind, source and content of each guard in a printed tree.

    The marks of a tensor are one guard with a line for each kind of mark; a relation stands at each of its members.
    """
    told: set[Guard] = set()
    source = ""
    for line in tree.splitlines():
        if match := _MANAGER.search(line):
            source = source_of(match["source"])
        elif match := _LEAF.match(line):
            guard = _guard(match["check"], source, match["text"].partition("  # ")[0].strip())
            if guard not in told or not (guard[0] == "marks" or guard[2].startswith(_RELATIONS)):
                yield guard
            told.add(guard)


def _guard(check: str, source: str, text: str) -> Guard:
    if check == "TENSOR_MATCH" and (match := _CHECKED_TENSOR.search(text)):
        return "tensor", source_of(match["source"]), " ".join(match.group("dtype", "grad", "size", "stride"))
    if check == "DIMENSION_DYNAMIC_MARKING_GUARD":
        return "marks", source, ""
    if match := _CHECKED_ID.match(text):
        return ("type" if match["what"] == "type" else "identity"), source_of(match["source"]), ""
    return "text", "", steady(in_words(text))


def user_frames(text: str) -> tuple[Place, ...]:
    """The user's frames in a text that has a traceback."""
    return tuple(frame for frame in _frames(text) if is_user(frame.file))


def _frames(text: str) -> Sequence[Place]:
    return [Place(m["file"], int(m["line"]), _original(m["function"])) for m in _FRAME.finditer(text)]


def _texts(payload: str) -> list[str]:
    """A record of several reasons is a list as JSON, that of one reason is its bare text."""
    try:
        texts = json.loads(payload)
    except ValueError:
        return [payload]
    return [str(text) for text in texts] if isinstance(texts, list) else [str(texts)]


def _read_reason(text: str) -> tuple[str, int | None]:
    guard, _, stack = text.partition(": ")[2].partition("\nUser stack trace:\n")
    lines = [frame.line for frame in _frames(stack) if is_user(frame.file)]
    guard = re.split(r"\s+# |\s*\(HINT: ", guard)[0].strip()
    return steady(guard), lines[-1] if lines else None


def steady(text: str) -> str:
    """A text of torch's without what differs from one process to the next: addresses, clocks, the order of sets."""
    text = re.sub(r"0x[0-9a-f]{8,}|\d{13,}", "ADDRESS", text)
    text = re.sub(r"\b\d+\.\d{6,}\b", "READING", text)
    text = re.sub(r"\{(<[^{}]*>)\}", lambda match: "{" + ", ".join(sorted(match[1].split(", "))) + "}", text)
    return re.sub(r"(___dict_version\(.*?\) == )\d+", r"\1VERSION", text)


def _original(name: str) -> str:
    while match := _RESUMED.match(name):
        name = match[1]
    return name
