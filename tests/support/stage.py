"""Plays the steps of a case (see `support.cases`) on a session whose worker, clock and editor are stand-ins.

A method `_do_KIND` does something, a method `_see_KIND` gives the text of what is seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import yaml

from inductoscope.protocol import codec
from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Finding, Rung, Status, TargetReport
from inductoscope.server import settings
from inductoscope.server.extensions import Node
from inductoscope.server.features import (
    actions,
    artifacts,
    explore,
    highlighting,
    hover,
    inlay_hints,
    languages,
    lens,
    outline,
    status,
)
from inductoscope.server.features.artifacts import Address, Spot
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.features.outline import Symbol
from inductoscope.server.settings import Trust
from support.cases import Step, marks
from support.session import Harness

FOLDER = "/w"
DEVICE = "sim:H200"
SOURCE = "@triton.jit\ndef kernel(x):\n    y = max(x, 0)\n    z = y + 1\n"

MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):  # <forward>
        y = torch.relu(x)  # <relu>
        z = y + 1  # <add>
        return z.sum()  # <sum>


def get_inputs():
    return [torch.ones(4, 8)]
"""
"""What `open` opens when it says nothing."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "findings": {"code": "graph-break", "severity": "warning", "column": 0, "end_column": 0, "rung": "capture"},
    "graphs": {"id": "0/0", "function": "forward", "ops": 2},
    "breaks": {
        "code": "GB1",
        "column": 0,
        "end_column": 0,
        "explanation": "",
        "hints": [],
        "link": None,
        "frames": [],
        "outcome": "split",
    },
    "kernels": {"language": "triton", "phase": "forward", "graph": "0/0", "source": SOURCE},
    "fusion_groups": {"kind": "pointwise", "fusion": "vertical", "apart_from": []},
    "values": {"op": "relu", "graph": "0/0", "device": "cuda:0"},
    "fx_graphs": {"graph": "0/0", "stage": "captured", "phase": "forward", "ops": 1, "nodes": []},
    "wrappers": {"graph": "0/0", "phase": "forward", "language": "python"},
    "guards": {"compile_id": "0/0", "kind": "size"},
    "dimensions": {"compile_id": "0/0", "state": "static"},
    "recompiles": {"function": "forward", "compile_id": "0/1", "input_set": 1, "guards": []},
    "syncs": {"what": "item", "value": None, "guessed": False},
    "skipped": {"function": "forward"},
    "passes": {"graph": "0/0", "phase": "forward"},
    "probes": {"message": "", "outcome": "unknown"},
}
"""What need not be said of the parts of a report."""


class Stage:
    """A session, and what the steps of one case do with it."""

    def __init__(self) -> None:
        self.h = Harness()
        self.marks: dict[str, tuple[str, int]] = {}
        self.texts: dict[str, str] = {}
        self.given: dict[str, str] = {}

    async def play(self, step: Step) -> str | None:
        """Do a step; for one that looks, what is seen."""
        do: Callable[..., Any] | None = getattr(self, f"_do_{step.kind}", None)
        if do is not None:
            await do(step.argument, step.body)
            await self.h.flushed()
            return None
        see: Callable[[str], str] = getattr(self, f"_see_{step.kind}")
        return "\n".join(line.rstrip() for line in see(step.argument).split("\n")).rstrip("\n")

    # What happens

    async def _do_open(self, name: str, body: str) -> None:
        name = name or "model.py"
        self._note(name, f"{body}\n" if body else MODEL)
        self.h.open(self.texts[name], _path(name))

    async def _do_edit(self, name: str, body: str) -> None:
        self._note(name, f"{body}\n")
        self.h.edit(self.texts[name], _path(name))

    async def _do_replace(self, name: str, body: str) -> None:
        """Edit: the text above `=>` becomes the one below it."""
        name = name or "model.py"
        old, _, new = body.partition("\n=>")
        assert old in self.texts[name], f"{old!r} is not in {name}"
        self._note(name, self.texts[name].replace(old, new.removeprefix("\n"), 1))
        self.h.edit(self.texts[name], _path(name))

    async def _do_above(self, mark: str, body: str) -> None:
        """Edit: put lines above a marked one."""
        path, line = self.marks[mark]
        name = path.removeprefix(f"{FOLDER}/")
        lines = self.texts[name].split("\n")
        self._note(name, "\n".join([*lines[: line - 1], *body.split("\n"), *lines[line - 1 :]]))
        self.h.edit(self.texts[name], path)

    async def _do_given(self, name: str, body: str) -> None:
        """A document that says this, whatever is known."""
        self.given[name] = f"{body}\n"

    async def _do_save(self, name: str, _: str) -> None:
        self.h.save(_path(name or "model.py"))

    async def _do_close(self, name: str, _: str) -> None:
        self.h.session.close(_path(name or "model.py"))

    async def _do_settings(self, folder: str, body: str) -> None:
        values = {"device": DEVICE, **(yaml.safe_load(body) or {})}
        found = settings.read(values)
        assert found.problems == ()
        await self.h.session.configure(folder, found.settings)

    async def _do_trust(self, _: str, __: str) -> None:
        self.h.session.trust(Trust.TRUSTED)

    async def _do_distrust(self, _: str, __: str) -> None:
        self.h.session.trust(Trust.UNTRUSTED)

    async def _do_wait(self, seconds: str, _: str) -> None:
        self.h.clock.advance(float(seconds))

    async def _do_check(self, target: str, _: str) -> None:
        self.h.session.check(_path("model.py"), target or None)

    async def _do_benchmark(self, target: str, _: str) -> None:
        self.h.session.benchmark(_path("model.py"), target or "Model.forward")

    async def _do_find(self, _: str, body: str) -> None:
        """The run that goes on finds something; the run stays the current one."""
        run = self.h.runner.runs[-1]
        run.find(self._finding(yaml.safe_load(body), run.request.target.file))

    async def _do_progress(self, text: str, _: str) -> None:
        self.h.runner.runs[-1].progress(text)

    async def _do_finish(self, _: str, body: str) -> None:
        run = await self.h.runner.next()
        fields = self._fields(yaml.safe_load(body) or {}, run.request.target.file)
        findings = fields.pop("findings", ())
        run.finish(*findings, **fields)
        await self._answered()

    async def _do_fail(self, kind: str, body: str) -> None:
        run = await self.h.runner.next()
        run.fail(FailureKind(kind), body)
        await self._answered()

    async def _answered(self) -> None:
        """Let the session take in an answer; other runs may go on."""
        for _ in range(4):
            await self.h.flushed()

    async def _do_start(self, _: str, __: str) -> None:
        """The next run has started and goes on."""
        await self.h.runner.next()

    def _note(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.marks = {mark: place for mark, place in self.marks.items() if place[0] != _path(name)}
        self.marks |= {mark: (_path(name), line) for mark, line in marks(text).items()}

    # What workers say

    def _fields(self, values: dict[str, Any], file: str) -> dict[str, Any]:
        """Fields of a report from their short forms."""
        full = {
            name: [self._whole(name, item, file) for item in value] if name in DEFAULTS else value
            for name, value in self._resolved(values).items()
        }
        empty = codec.to_json(TargetReport(file, "", 1, DEVICE, Rung.ASSEMBLE, Status.COMPILED))
        report = codec.from_json(TargetReport, {**empty, **full})
        return {name: getattr(report, name) for name in full}

    def _finding(self, value: dict[str, Any], file: str) -> Finding:
        return codec.from_json(Finding, self._whole("findings", self._resolved(value), file))

    def _whole(self, name: str, value: dict[str, Any], file: str) -> dict[str, Any]:
        """A part of a report with its defaults; places get the target's file unless another is named."""
        cls = get_args(get_type_hints(TargetReport)[name])[0]
        known = {field.name for field in dataclasses.fields(cls)}
        full = {**DEFAULTS[name], **value}
        if name == "kernels":
            full["lines"] = [{"line": line} for line in full.get("lines", [full.pop("line")] if "line" in full else [])]
            full["line_map"] = [{"kernel_line": at, "line": line} for at, line in full.pop("map", {}).items()]
            if isinstance(full.get("predicted"), int | float):
                full["predicted"] = {"us": full["predicted"], "bound": "memory", "model": "roofline"}
        if name in ("findings", "breaks"):
            full.setdefault("end_line", full.get("line"))
        if "file" in known and full.get("line") is not None:
            full.setdefault("file", file)
        return _with_files(full, file)

    def _resolved(self, value: Any) -> Any:
        """The value with lines in place of marks, and full paths in place of names of files."""
        if isinstance(value, dict):
            return {key: _path(item) if key == "file" else self._resolved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._resolved(item) for item in value]
        return self.marks[value[1:]][1] if isinstance(value, str) and value.startswith("@") else value

    # What is seen

    def _see_diagnostics(self, name: str) -> str:
        return "\n".join(
            line for shown in self.h.editor.shown.get(_path(name or "model.py"), ()) for line in _said(shown)
        )

    def _see_hover(self, mark: str) -> str:
        path, line = self.marks[mark]
        found = hover.hover(self.h.session.snapshot(), path, line)
        return "nothing" if found is None else write(found.blocks, Markup.PLAIN)

    def _see_markdown(self, mark: str) -> str:
        path, line = self.marks[mark]
        found = hover.hover(self.h.session.snapshot(), path, line)
        return "nothing" if found is None else write(found.blocks, Markup.MARKDOWN)

    def _see_lenses(self, name: str) -> str:
        found = lens.lenses(self.h.session.snapshot(), _path(name or "model.py"))
        return "\n".join(f"{one.line}: {one.title}{_does(one.command)}" for one in found)

    def _see_hints(self, name: str) -> str:
        snapshot = self.h.session.snapshot()
        found = inlay_hints.inlay_hints(snapshot, _path(name or "model.py"))
        lines = []
        for hint in found:
            leads_to = inlay_hints.leads_to(snapshot, hint)
            lines.append(f"{hint.line}:{hint.column} {hint.label}{f' -> {leads_to}' if leads_to else ''}")
            lines += [f"    {line}" for line in hint.tooltip.split("\n")]
        return "\n".join(lines)

    def _see_actions(self, mark: str) -> str:
        path, line = self.marks[mark]
        found = actions.actions(self.h.session.snapshot(), path, line, line)
        shown = (one for one in found if one.fix is None)
        return "\n".join(
            f"{one.kind.value}: {one.title}{f' (not now: {one.disabled})' if one.disabled else ''}" for one in shown
        )

    def _see_status(self, _: str) -> str:
        now = status.status(self.h.session.snapshot())
        lines = [f"{now.health.value}{'' if now.quiescent else ', busy'}: {now.message}"]
        return "\n".join(
            [
                *lines,
                *(
                    f"{one.name} line {one.line} {one.state.value}{_old(one.stale)}: {one.summary}"
                    for one in now.targets
                ),
            ]
        )

    def _see_explore(self, name: str) -> str:
        found = explore.explore(self.h.session.snapshot(), _path(name or "model.py"))
        lines = [found.state.value + (f": {found.message}" if found.message else "")]
        for target in found.targets:
            lines.append(f"{target.name} line {target.line} {target.state.value}{_old(target.stale)}")
            lines += [f"  line {line} is now {now}" for line, now in target.lines.items()]
            shown = (*target.documents, *target.graphs, *target.wrappers, *target.pages)
            lines += [f"  {one.uri.rpartition('/')[2]} ({one.language})" for one in shown]
        return "\n".join(lines)

    def _see_tree(self, name: str) -> str:
        found = explore.explore(self.h.session.snapshot(), _path(name or "model.py"))
        return "\n".join(line for target in found.targets for line in [target.name, *_tree(target.nodes, 1)])

    def _see_text(self, name: str) -> str:
        return self.given.get(name) or artifacts.content(self.h.session.snapshot(), self._address(name))

    def _see_symbols(self, name: str) -> str:
        return "\n".join(_symbols(outline.symbols(languages.of(name), self._see_text(name)), 0))

    def _see_folds(self, name: str) -> str:
        found = outline.folds(languages.of(name), self._see_text(name))
        return "\n".join(f"{one.first}-{one.last}" for one in found)

    def _see_links(self, name: str) -> str:
        text = self._see_text(name)
        lines = text.split("\n")
        found = artifacts.named(self.h.session.snapshot(), self._address(name), text)
        return "\n".join(
            f"{one.line}: {lines[one.line - 1][one.start : one.end]} -> {_spot(spot)}" for one, spot in found
        )

    def _see_words(self, name: str) -> str:
        text = self._see_text(name)
        lines = text.split("\n")
        found = highlighting.words(languages.of(name), text)
        return "\n".join(f"{one.line}: {one.kind.value} {lines[one.line - 1][one.start : one.end]}" for one in found)

    def _see_definition(self, argument: str) -> str:
        name, _, line = argument.rpartition(":")
        found = artifacts.origins(self.h.session.snapshot(), self._address(name), int(line))
        return "\n".join(map(_spot, found)) or "nothing"

    def _see_runs(self, _: str) -> str:
        return "\n".join(
            f"{run.name} {run.request.device} {run.request.rung.value}{' cancelled' if run.cancelled else ''}"
            for run in self.h.runner.runs
        )

    def _see_told(self, _: str) -> str:
        return "\n".join(self.h.editor.told)

    def _address(self, name: str) -> Address:
        views = list(self.h.session.snapshot().targets_in(_path("model.py")))
        return Address(_path("model.py"), views[0].target.name if views else "Model.forward", name)


def _path(name: str) -> str:
    return name if name.startswith("/") else f"{FOLDER}/{name}"


def _with_files(value: Any, file: str) -> Any:
    """Every place without a file is in `file`."""
    if isinstance(value, dict):
        found = {key: _with_files(item, file) for key, item in value.items()}
        needs = "line" in found and "file" not in found and found["line"] is not None
        return {**found, "file": file} if needs else found
    return [_with_files(item, file) for item in value] if isinstance(value, list) else value


def _said(shown: Any) -> Iterator[str]:
    finding = shown.finding
    known_by = f" {finding.id}" if finding.id else ""
    yield f"{finding.line}:{finding.column} {finding.severity.value} {finding.code}{known_by}: {finding.message}"
    for one in finding.related:
        yield f"    {one.line} {one.message}"


def _does(command: Any) -> str:
    return f" [{command.name.value.rpartition('.')[2]}]" if command is not None else ""


def _old(stale: bool) -> str:
    return " (edited since)" if stale else ""


def _spot(spot: Spot) -> str:
    return f"{spot.path}:{spot.line}" if spot.path is not None else f"{(spot.uri or '').rpartition('/')[2]}:{spot.line}"


def _tree(nodes: tuple[Node, ...], depth: int) -> Iterator[str]:
    for node in nodes:
        place = f" @{node.line}" if node.line is not None else ""
        opens = f" -> {node.uri.rpartition('/')[2]}" if node.uri else ""
        detail = f" ({node.detail})" if node.detail else ""
        yield f"{'  ' * depth}{node.kind.value}: {node.label}{detail}{place}{opens}"
        yield from _tree(node.children, depth + 1)


def _symbols(found: tuple[Symbol, ...], depth: int) -> Iterator[str]:
    for one in found:
        yield f"{'  ' * depth}{one.kind.value} {one.name} {one.first}-{one.last}"
        yield from _symbols(one.children, depth + 1)
