"""What the editor shows now, so that it is told only of what changed."""

from __future__ import annotations

from collections.abc import Mapping

from inductoscope.server import diagnostics
from inductoscope.server.features import lens
from inductoscope.server.ports import Editor
from inductoscope.server.snapshot import Snapshot


class Display:
    """Brings an editor up to date with one snapshot after the other."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._findings: Mapping[str, tuple[diagnostics.Shown, ...]] = {}
        self._lenses: Mapping[str, tuple[lens.Lens, ...]] = {}

    def show(self, snapshot: Snapshot) -> None:
        """Publish the findings of every file where they changed, and have lenses asked for again if any changed."""
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
        self._editor.update(snapshot)
