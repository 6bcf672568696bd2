"""Kernels as the report shows them, from what was noted about their calls."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inductoscope.compiler.lower.launch import launch_of
from inductoscope.compiler.lower.line_map import computing_lines, nodes_by_line
from inductoscope.compiler.lower.nodes import Origins
from inductoscope.compiler.lower.places import Places, distinct
from inductoscope.compiler.lower.record_mode import Choices
from inductoscope.compiler.lower.recording import Call, Compilation
from inductoscope.compiler.lower.traffic import flops, traffic
from inductoscope.protocol.report import Kernel, KernelLanguage, LineMapping, Phase, Place


@dataclass(frozen=True)
class KernelBuilder:
    """Makes the kernels of one graph."""

    noted: Compilation
    graph_id: str
    phase: Phase
    places: Places
    choices: Choices

    def build(self, sources: list[str | None]) -> list[Kernel]:
        """The kernels in call order; `sources` holds a text a call, None for a library's."""
        origins = Origins(self.noted)
        calls = zip(self.noted.calls, sources, strict=True)
        return [self._kernel(call, origins.of_call(call), source) for call, source in calls]

    def _kernel(self, call: Call, nodes: tuple[torch.fx.Node, ...], source: str | None) -> Kernel:
        lines = distinct(map(self.places.of, nodes))
        moved = traffic(call)
        language = _language(source)
        return Kernel(
            name=call.name,
            language=language,
            phase=self.phase,
            graph=self.graph_id,
            source=source,
            lines=lines,
            library_lines=distinct(map(self.places.library, nodes)),
            line_map=self._line_map(call, source, lines) if source and not call.extern else (),
            bytes_read=moved.read,
            bytes_written=moved.written,
            flops=flops(call, nodes),
            launch=launch_of(source) if source and language is KernelLanguage.TRITON else None,
            user_written=call.extern and source is not None,
            note=next((self.choices.by_node[node] for node in nodes if node in self.choices.by_node), None),
        )

    def _line_map(self, call: Call, source: str, lines: tuple[Place, ...]) -> tuple[LineMapping, ...]:
        nodes = nodes_by_line(self.noted, call, source)
        found = {at: place for at, node in nodes.items() if (place := self.places.of(node))}
        if len(lines) == 1:  # the whole kernel is one line of the model, so is what no operation claims
            found = {**dict.fromkeys(computing_lines(source), lines[0]), **found}
        return tuple(LineMapping(at, place.file, place.line) for at, place in sorted(found.items()))


def _language(source: str | None) -> KernelLanguage:
    if source is None:
        return KernelLanguage.EXTERN
    return KernelLanguage.CPP if 'extern "C"' in source else KernelLanguage.TRITON
