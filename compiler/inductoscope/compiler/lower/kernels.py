"""Kernels as the report shows them, from what was noted about their calls."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inductoscope.compiler.compat.libraries import tensors_of
from inductoscope.compiler.float32 import may_use_tf32
from inductoscope.compiler.layouts import layouts_of, text_of
from inductoscope.compiler.lower.launch import launch_of
from inductoscope.compiler.lower.line_map import body_lines, computing_lines, nodes_by_line, own_lines
from inductoscope.compiler.lower.nodes import Origins
from inductoscope.compiler.lower.places import Places, distinct
from inductoscope.compiler.lower.record_mode import Choices
from inductoscope.compiler.lower.recording import Call, Compilation
from inductoscope.compiler.lower.traffic import flops, traffic
from inductoscope.compiler.lower.who_computes import Platform, who_computes
from inductoscope.protocol.report import Choice, Kernel, KernelLanguage, LineMapping, Phase, Place


@dataclass(frozen=True)
class KernelBuilder:
    """Makes the kernels of one graph."""

    noted: Compilation
    graph_id: str
    phase: Phase
    places: Places
    choices: Choices
    platform: Platform

    def build(self, sources: list[str | None]) -> list[Kernel]:
        """The kernels in call order; `sources` holds a text a call, None for a library's."""
        origins = Origins(self.noted)
        calls = zip(self.noted.calls, sources, strict=True)
        return [self._kernel(call, origins, source) for call, source in calls]

    def _kernel(self, call: Call, origins: Origins, source: str | None) -> Kernel:
        nodes = origins.of_call(call)
        lines = distinct(map(self.places.nearest, nodes))
        moved = traffic(call)
        language = _language(source)
        chosen = self._autotuned(call, origins)
        return Kernel(
            name=call.name,
            language=language,
            phase=self.phase,
            graph=self.graph_id,
            source=source,
            lines=distinct(map(self.places.of, nodes)),
            library_lines=distinct(map(self.places.library, nodes)),
            line_map=self._line_map(call, origins, source, lines) if source else (),
            bytes_read=moved.read,
            bytes_written=moved.written,
            flops=flops(call, nodes),
            launch=launch_of(source, nodes, self.choices.replay)
            if source and language is KernelLanguage.TRITON
            else None,
            user_written=call.extern and source is not None,
            library=who_computes(call, nodes[0] if nodes else None, self.platform),
            operands=_operands(nodes) if call.extern else (),
            tf32=call.extern and may_use_tf32(call.name),
            choices=tuple(Choice(way.name, way.us, way.chosen) for way in self.choices.candidates.get(chosen, ())),
            note=self.choices.by_node.get(chosen),
        )

    def _autotuned(self, call: Call, origins: Origins) -> torch.fx.Node | None:
        """The operator of a library call or a template, for which there may have been a choice; nobody has timed it."""
        leaf = call.nodes[0] if call.extern else next((leaf for leaf in call.nodes if leaf.is_template()), None)
        return origins.creator(leaf) if leaf is not None else None

    def _line_map(self, call: Call, origins: Origins, source: str, lines: tuple[Place, ...]) -> tuple[LineMapping, ...]:
        if call.extern:
            return own_lines(origins.of_call(call), source)
        nodes = nodes_by_line(self.noted, call, source)
        found = {at: place for at, node in nodes.items() if (place := self.places.nearest(node))}
        template = next((leaf for leaf in call.nodes if leaf.is_template()), None)
        body = self.places.nearest(origins.creator(template)) if template else None
        if body is not None:  # what neither prologue nor epilogue wrote stands in the template itself
            found = {**dict.fromkeys(body_lines(source), body), **found}
        elif len(lines) == 1:  # the whole kernel is one line of the model, so is what no operation claims
            found = {**dict.fromkeys(computing_lines(source), lines[0]), **found}
        return tuple(LineMapping(at, place.file, place.line) for at, place in sorted(found.items()))


def _operands(nodes: tuple[torch.fx.Node, ...]) -> tuple[str, ...]:
    """The tensors that an operator is given, in the order of its arguments."""
    values = tensors_of(nodes[0]) if nodes else []
    return tuple(text_of(layout) for value in values for layout in layouts_of(value))


def _language(source: str | None) -> KernelLanguage:
    if source is None:
        return KernelLanguage.EXTERN
    return KernelLanguage.CPP if 'extern "C"' in source else KernelLanguage.TRITON
