"""What a run tells the server while it goes on, and the phases that it goes through."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from inductoscope.compiler.timeline import Timeline
from inductoscope.protocol.messages import FindingFound, LogLine, Message, Progress, RungDone
from inductoscope.protocol.report import Finding, Rung, TargetReport

Send = Callable[[Message], None]


@dataclass
class Teller:
    """Speaks for the run `run_id`, whose phases go to `timeline`."""

    run_id: int
    send: Send
    timeline: Timeline = field(default_factory=Timeline)

    @contextlib.contextmanager
    def phase(self, name: str, rung: Rung, doing: str) -> Iterator[None]:
        """Say what is being done (`importing model.py`) and take its time."""
        self.progress(rung, doing)
        with self.timeline.phase(name):
            yield

    def progress(self, rung: Rung, doing: str) -> None:
        """Say what is being done, in words that go on after "while"."""
        self.send(Progress(self.run_id, rung, doing))

    def finding(self, finding: Finding) -> None:
        """Tell a finding as soon as it is known."""
        self.send(FindingFound(self.run_id, finding))

    def rung_done(self, report: TargetReport) -> None:
        """Tell the whole report after its rung."""
        self.send(RungDone(self.run_id, report.rung, report))

    def log(self, text: str) -> None:
        """Tell the log something that is no fact about the program."""
        self.send(LogLine("info", text))
