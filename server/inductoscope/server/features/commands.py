"""The commands by name, and whether each is possible for a target now.  Names and arguments are a public API."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from inductoscope.server.features.artifacts import Page
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Activity, Snapshot, TargetView


class CommandName(enum.Enum):
    """See `docs/lsp-extensions.md`."""

    CHECK = "inductoscope.check"
    BENCHMARK = "inductoscope.benchmark"
    SHOW_KERNELS = "inductoscope.showKernels"
    SHOW_GUARDS = "inductoscope.showGuards"
    SHOW_TIMELINE = "inductoscope.showTimeline"
    SHOW_DOCUMENT = "inductoscope.showDocument"
    RESTART = "inductoscope.restart"


@dataclass(frozen=True)
class Command:
    """A command on a target of an open file, or on a document of it."""

    name: CommandName
    title: str
    path: str
    target: str
    document: str | None = None


PAGES = {
    CommandName.SHOW_KERNELS: Page.REPORT,
    CommandName.SHOW_GUARDS: Page.GUARDS,
    CommandName.SHOW_TIMELINE: Page.TIMELINE,
}
"""The commands that open a page, and which."""


def obstacle(snapshot: Snapshot, view: TargetView, name: CommandName) -> str | None:
    """Why the command cannot be done for this target now, in a sentence; None when it can."""
    if name is CommandName.SHOW_KERNELS:
        return None if kernels_of(view) else "No kernels are known yet: check the target first."
    if name in (CommandName.SHOW_GUARDS, CommandName.SHOW_TIMELINE, CommandName.SHOW_DOCUMENT):
        return None if view.settled is not None else f"Nothing is known of {view.target.name} yet: check it first."
    if snapshot.trust is Trust.UNTRUSTED:
        return "This workspace is not trusted, so none of its code is run."
    if view.scanned.inputs is None:
        return f"No example inputs are known for {view.target.name}: write an `# inductoscope:` comment above it."
    if name is CommandName.BENCHMARK and view.activity is Activity.MEASURING:
        return "It is being measured now."
    return None


def kernels_of(view: TargetView) -> bool:
    """Whether any result of the target has kernels."""
    return any(result.report.kernels for result in view.results)
