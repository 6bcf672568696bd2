"""What the session needs of the outside: somebody to show things to, to run things, and to
watch files.

The real ones are in `editor` (over LSP), `workers` and `watching`; tests bring their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from inductoscope.server.diagnostics import Shown
from inductoscope.server.settings import Settings
from inductoscope.server.snapshot import Snapshot
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest


class Progress(Protocol):
    """Shows that something is going on; `end` must be called once."""

    def report(self, text: str) -> None:
        """Say what is being done now."""

    def end(self, text: str) -> None:
        """Say how it ended."""


class Editor(Protocol):
    """Where the session shows things.  No method waits for the person or the client."""

    def publish(self, snapshot: Snapshot, path: str, shown: tuple[Shown, ...]) -> None:
        """Show these and only these findings in a file."""

    def refresh(self) -> None:
        """Have lenses asked for again."""

    def refresh_hints(self) -> None:
        """Have inlay hints asked for again."""

    def update(self, snapshot: Snapshot) -> None:
        """Something may have changed: tell what is being followed."""

    def tell(self, message: str) -> None:
        """Show the person a sentence."""

    def progress(self, title: str, cancel: Callable[[], None]) -> Progress:
        """Show work that the person may cancel."""


class Follower(Protocol):
    """Hears of changes on disk, which it tells whoever made it."""

    @property
    def waiting(self) -> frozenset[str]:
        """What has changed and was not told yet."""

    def follow(self, files: frozenset[str]) -> None:
        """From now on follow these files and no others."""

    def close(self) -> None:
        """Follow nothing any more."""


class Runner(Protocol):
    """Runs requests in the interpreter of one workspace folder."""

    def interpreter(self, file: str) -> tuple[str, ...] | None:
        """The command that starts the interpreter for programs of a file; None where there is none."""

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Do it.  Never raises for anything that the program does; cancelling ends it."""

    async def close(self) -> None:
        """End everything that was started ahead of time."""


MakeRunner = Callable[[Settings], Runner]
"""The runner for a workspace folder with these settings; raises nothing: one that cannot run says so when asked to."""
