"""What the editor shows now, so that it is told only of what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inductoscope.server import diagnostics
from inductoscope.server.features import inlay_hints, lens
from inductoscope.server.ports import Editor
from inductoscope.server.snapshot import Snapshot


class Display:
    """Brings an editor up to date with one snapshot after the other."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._findings: Mapping[str, tuple[diagnostics.Shown, ...]] = {}
        self._lenses: Mapping[str, tuple[lens.Lens, ...]] = {}
        self._hints: Mapping[str, tuple[str, ...]] = {}

    def show(self, snapshot: Snapshot) -> None:
        """Publish the findings of each file where they changed; have lenses and hints asked for again if any did."""
        findings = diagnostics.merge(snapshot)
        for path in {**self._findings, **findings}:
            shown = findings.get(path, ())
            if shown != self._findings.get(path, ()):
                self._editor.publish(snapshot, path, shown)
        self._findings = findings
        lenses = {path: lens.lenses(snapshot, path) for path in snapshot.files}
        if lenses != self._lenses:
            self._lenses = lenses
            self._editor.refresh()
        # Clients move hints with the text by themselves, so only what they say counts.
        hints = {path: _said(inlay_hints.inlay_hints(snapshot, path)) for path in snapshot.files}
        if hints != self._hints:
            self._hints = hints
            self._editor.refresh_hints()
        self._editor.update(snapshot)


def _said(hints: Iterable[inlay_hints.InlayHint]) -> tuple[str, ...]:
    return tuple(hint.label for hint in hints)
