"""Graphs and generated code of a trace as facts: kernels in call order, the lines behind them, collectives.

Reads the texts that torch writes for people (2.6 to 2.15): FX graphs with `# File:` comments, and Inductor's wrappers.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Place
from inductoscope.server.traces.break_records import frames_in
from inductoscope.server.traces.compilations import Compilation, Frame, Text, original_name
from inductoscope.server.traces.places import Places

_AOT_ID = re.compile(r"^# AOT ID: \[['\"]\w*_(forward|backward|inference)['\"]\]", re.M)
_DEFINITION = re.compile(r"^(?P<name>\w+) = async_compile\.(?P<how>\w+)\(", re.M)
_KERNEL_CALL = re.compile(
    r"^ +(?:\w+ = )?(?P<name>(?:cpp|triton)_\w+(?=\(|\.run\()|extern_kernels\.\w+|aten\.[\w.]+"
    r"|torch\.ops\.(?!inductor\b)[\w.]+)\b"
)
_NODES = re.compile(r"# Topologically Sorted Source Nodes: \[(?P<nodes>[^\]]*)\]")
_HANDLE = re.compile(r"# \[Provenance debug handles\] (?P<handle>\S+)")
_FILE = re.compile(r"# File: (?P<file>.+?):(?P<line>\d+) in (?P<function>[^,]+)(?:, code: (?P<text>.*))?$")
_MADE = re.compile(r"^\s+(?P<name>\w+)(?:: [\"'][^\"']*[\"'])? = (?P<what>.*)$")
_DEVICE = re.compile(r'\](?P<device>cpu|cuda|xpu|mps|mtia)(?::\d+)?"')
_COLLECTIVE = re.compile(r"(?:torch\.ops\.)?_c10d_functional(?:_autograd)?\.(?P<name>\w+)")
_WITH_LINES = (
    "aot_backward_graph",
    "aot_inference_graph",
    "aot_forward_graph",
    "aot_joint_graph",
    "dynamo_output_graph",
)
_WAITS = frozenset({"wait_tensor"})
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"


class Sources(enum.Enum):
    """Whether the texts of kernels and wrappers are wanted; those of a long run do not fit into memory."""

    LEFT_OUT = "left-out"
    KEPT = "kept"


@dataclass(frozen=True)
class Collective:
    """A collective inside a graph, with the user's line."""

    name: str
    graph: str
    file: str | None
    line: int | None


def phase_of(code: str) -> Phase:
    """Which pass a wrapper is for."""
    match = _AOT_ID.search(code[:4096])
    return Phase.BACKWARD if match is not None and match[1] == "backward" else Phase.FORWARD


def device_of(texts: Iterable[str]) -> str | None:
    """The kind of device that the tensors of a graph or the kernels of a wrapper are on; None where no text says."""
    for text in texts:
        if "async_compile.triton(" in text:
            return "cuda" if "'cuda'" in text else "xpu" if "'xpu'" in text else "cpu"
        if match := _DEVICE.search(text):
            return match["device"]
        if "async_compile.cpp" in text:
            return "cpu"
    return None


def kernels(one: Compilation, places: Places, sources: Sources) -> Iterator[Kernel]:
    """The kernels that a compilation's wrappers call, in order."""
    stacks = _stacks(one)
    lines = _lines_of_nodes(text.payload.text() for text in _graphs_with_lines(one))
    for text in one.codes:
        code = text.payload.text()
        phase = phase_of(code)
        defined = _definitions(code) if sources is Sources.KEPT else {}
        for name, nodes, handle in _calls(code):
            frames = stacks.get(handle) or tuple(lines[node] for node in nodes if node in lines)
            at = dict.fromkeys(map(places.of, (frame for frame in frames if frame.is_user)))
            own = tuple(sorted(at, key=lambda place: (place.file, place.line)))
            yield Kernel(name, _language(name), phase, one.id, defined.get(name), own)


def collectives(one: Compilation, places: Places) -> Iterator[Collective]:
    """The collectives in the graph that Dynamo captured, in order, and those of the schedule where it has none.

    The text of a graph has the innermost line of each operator, which for a collective is torch's own; the user's line
    is then that of the kernel, which is known where provenance was on.
    """
    captured = [text for text in one.graphs if text.name == "dynamo_output_graph"][-1:]
    made = [made for text in captured for made in _made(text.payload.text()) if _COLLECTIVE.search(made[1])]
    if not made:
        made = [(None, f"_c10d_functional.{_short(name)}") for name in one.collectives]
    called = _called_collectives(one, places) if made else {}
    for frame, what in made:
        name = _collective(what)
        if name in _WAITS:
            continue
        at = places.of(frame) if frame is not None and frame.is_user else next(called.get(name, iter(())), None)
        yield Collective(name, one.id, at.file if at else None, at.line if at else None)


def _called_collectives(one: Compilation, places: Places) -> dict[str, Iterator[Place | None]]:
    """The user's line of each call of a collective in the wrappers, by name and in order."""
    found: dict[str, list[Place | None]] = {}
    for kernel in kernels(one, places, Sources.LEFT_OUT):
        if _COLLECTIVE.search(kernel.name):
            found.setdefault(_collective(kernel.name), []).append(kernel.lines[-1] if kernel.lines else None)
    return {name: iter(lines) for name, lines in found.items()}


def _collective(text: str) -> str:
    """The name of a collective without the mark of those that write in place."""
    match = _COLLECTIVE.search(text)
    return match["name"].rstrip("_") if match is not None else ""


def _short(name: str) -> str:
    return name.removeprefix("torch.ops.").removeprefix("_c10d_functional.").partition(".")[0]


def operators(graph: str) -> int:
    """How many calls an FX graph has, from its text."""
    return sum(not what.startswith(("self.", "L_", "l_")) and "(" in what for _, what in _made(graph))


def _language(name: str) -> KernelLanguage:
    if name.startswith("triton_"):
        return KernelLanguage.TRITON
    return KernelLanguage.CPP if name.startswith("cpp_") else KernelLanguage.EXTERN


def _definitions(code: str) -> dict[str, str]:
    """The texts of the kernels that a wrapper defines."""
    found = {}
    for match in _DEFINITION.finditer(code):
        start = code.find("'''", match.end())
        end = code.find("'''", start + 3)
        if start >= 0 and end >= 0:
            found[match["name"]] = code[start + 3 : end].strip("\n") + "\n"
    return found


def _calls(code: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each call of a kernel: its name, the nodes that it computes, and its handle in the provenance."""
    nodes: tuple[str, ...] = ()
    handle = ""
    for line in code.partition("def call(")[2].splitlines():
        if match := _NODES.search(line):
            nodes = tuple(name.strip() for name in match["nodes"].split(",") if name.strip())
        elif match := _HANDLE.search(line):
            handle = match["handle"]
        elif match := _KERNEL_CALL.match(line):
            yield match["name"], nodes, handle
            nodes, handle = (), ""


def _stacks(one: Compilation) -> Mapping[str, tuple[Frame, ...]]:
    """The lines behind each kernel where provenance was on: handle -> innermost frames."""
    found: dict[str, tuple[Frame, ...]] = {}
    for text in one.texts:
        if text.name == _STACKS:
            try:
                data = json.loads(text.payload.text())
            except ValueError:
                continue
            for handle, stacks in data.items() if isinstance(data, dict) else ():
                innermost = (user for stack in stacks for user in _innermost(str(stack)))
                found[str(handle)] = tuple(dict.fromkeys(innermost))
    return found


def _innermost(stack: str) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames_in(stack) if frame.is_user)[-1:]


def _graphs_with_lines(one: Compilation) -> Iterator[Text]:
    wanted = (
        "aot_backward_graph",
        "aot_inference_graph",
        "aot_forward_graph",
        "aot_joint_graph",
        "dynamo_output_graph",
    )
    yield from (text for name in wanted for text in one.graphs if text.name == name)


def _lines_of_nodes(graphs: Iterable[str]) -> dict[str, Frame]:
    """The user's line of each node; what a later graph says stands."""
    found: dict[str, Frame] = {}
    for graph in graphs:
        for line, frame in _assignments(graph):
            if frame is not None:
                found[line["name"]] = frame
    return found


def _made(graph: str) -> Iterator[tuple[Frame | None, str]]:
    """Each assignment of a graph's text, with the user's line."""
    for line, frame in _assignments(graph):
        yield frame, line["what"]


def _assignments(graph: str) -> Iterator[tuple[re.Match[str], Frame | None]]:
    """Comments stand before the nodes that they are about, outermost line first."""
    frame: Frame | None = None
    in_comment = False
    for line in graph.splitlines():
        if match := _FILE.search(line):
            at = Frame(match["file"], int(match["line"]), original_name(match["function"])[0], match["text"] or "")
            frame = at if at.is_user or not in_comment or frame is None else frame
            in_comment = True
        elif match := _MADE.match(line):
            in_comment = False
            yield match, frame
        elif line.strip():
            in_comment = False
