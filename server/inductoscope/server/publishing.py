"""After any change, one flush shows what is new; whoever waits for a document to settle is told then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from inductoscope.server.display import Display
from inductoscope.server.ports import Editor, Follower
from inductoscope.server.state import State


class Publishing:
    """Shows the state in the editor, and has the files of its programs followed."""

    def __init__(self, state: State, editor: Editor, follower: Follower) -> None:
        self._state = state
        self._follower = follower
        self._display = Display(editor)
        self._due = False
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def soon(self) -> None:
        """Something changed: flush in the next turn of the event loop, once."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._flush)

    async def once(self, reached: Callable[[], bool]) -> None:
        """Return after the first flush, from now on, at which `reached` holds."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((reached, done))
        self.soon()
        await done

    def _flush(self) -> None:
        self._due = False
        state = self._state
        if state.targets:
            files = {view.target.file for view in state.targets.values()}
            self._follower.follow(state.programs.files | state.folders.project_files(files))
        self._display.show(state.snapshot())
        waiting = [(reached, done) for reached, done in self._waiters if not done.done()]
        self._waiters = []
        for reached, done in waiting:
            if reached():
                done.set_result(None)
            else:
                self._waiters.append((reached, done))
