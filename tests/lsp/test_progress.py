from __future__ import annotations

from collections.abc import Callable

from inductoscope.server.progress import DELAY_S, DelayedProgress
from support.session import FakeClock


class FakeChannel:
    """Writes down what is shown; the client's answer to `create` comes when the test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.ready: Callable[[str], None] | None = None

    def create(self, title: str, cancel: Callable[[], None], ready: Callable[[str], None]) -> None:
        self.log.append("create")
        self.ready = ready

    def begin(self, token: str, title: str) -> None:
        self.log.append(f"begin {title}")

    def report(self, token: str, text: str) -> None:
        self.log.append(f"report {text}")

    def end(self, token: str, text: str) -> None:
        self.log.append(f"end {text}")


def started() -> tuple[FakeChannel, FakeClock, DelayedProgress]:
    channel, clock = FakeChannel(), FakeClock()
    return channel, clock, DelayedProgress(channel, clock, "Checking f", lambda: None)


def test_quick_work_shows_nothing() -> None:
    channel, clock, progress = started()
    progress.report("lowering")
    progress.end("done")
    clock.advance(DELAY_S * 2)
    assert channel.log == []


def test_slow_work_shows_what_it_does_and_how_it_ended() -> None:
    channel, clock, progress = started()
    progress.report("capturing")
    clock.advance(DELAY_S)
    assert channel.ready is not None
    channel.ready("token")
    progress.report("lowering")
    progress.end("compiled")
    assert channel.log == ["create", "begin Checking f", "report capturing", "report lowering", "end compiled"]


def test_work_that_ends_while_the_client_thinks_still_begins_and_ends() -> None:
    channel, clock, progress = started()
    clock.advance(DELAY_S)
    progress.end("compiled")
    assert channel.ready is not None
    channel.ready("token")
    assert channel.log == ["create", "begin Checking f", "end "]


def test_a_client_that_never_answers_delays_nothing() -> None:
    channel, clock, progress = started()
    clock.advance(DELAY_S)
    progress.report("lowering")
    progress.end("compiled")
    assert channel.log == ["create"]
