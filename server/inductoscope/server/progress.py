"""Progress that is shown only when something takes long, can be cancelled, and always ends.

Knows nothing of LSP: a channel does the talking.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

from inductoscope.server.clock import Clock

DELAY_S = 0.4
"""Work that ends sooner than this is not worth a flicker."""


class Channel(Protocol):
    """Where progress is shown."""

    def create(self, title: str, cancel: Callable[[], None], ready: Callable[[str], None]) -> None:
        """Ask for a place to show progress; `ready` gets its token once there is one, which may be never."""

    def begin(self, token: str, title: str) -> None:
        """Show the title."""

    def report(self, token: str, text: str) -> None:
        """Show what is being done."""

    def end(self, token: str, text: str) -> None:
        """Take it away."""


class _State(enum.Enum):
    QUIET = "quiet"
    SHOWN = "shown"
    OVER = "over"


class DelayedProgress:
    """Progress of one piece of work; `end` must be called once."""

    def __init__(self, channel: Channel, clock: Clock, title: str, cancel: Callable[[], None]) -> None:
        self._channel = channel
        self._title = title
        self._cancel = cancel
        self._state = _State.QUIET
        self._token = ""
        self._text = ""
        self._timer = clock.call_later(DELAY_S, self._ask)

    def report(self, text: str) -> None:
        """What is being done now."""
        self._text = text
        if self._state is _State.SHOWN:
            self._channel.report(self._token, text)

    def end(self, text: str) -> None:
        """The work is over."""
        self._timer.cancel()
        if self._state is _State.SHOWN:
            self._channel.end(self._token, text)
        self._state = _State.OVER

    def _ask(self) -> None:
        self._channel.create(self._title, self._cancel, self._ready)

    def _ready(self, token: str) -> None:
        # LSP wants every progress that was created to begin and end, also when the work was quicker.
        self._token = token
        self._channel.begin(token, self._title)
        if self._state is _State.OVER:
            self._channel.end(token, "")
            return
        self._state = _State.SHOWN
        if self._text:
            self._channel.report(token, self._text)
