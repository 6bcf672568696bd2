"""The commands of `workspace/executeCommand`: each returns at once, and says why where it cannot be done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from pygls.exceptions import JsonRpcInvalidParams

from inductoscope.server import to_lsp
from inductoscope.server.editor import LspEditor
from inductoscope.server.features import artifacts
from inductoscope.server.features.commands import PAGES, CommandName, obstacle
from inductoscope.server.session import Session
from inductoscope.server.snapshot import TargetView
from inductoscope.server.to_lsp import BadArgumentsError, Subject
from inductoscope.server.transport import Server

Handler: TypeAlias = Callable[..., Any]


class CommandEndpoints:
    """The commands of one server."""

    def __init__(self, server: Server, editor: LspEditor, session: Session) -> None:
        self._server = server
        self._editor = editor
        self._session = session

    def register(self) -> None:
        """Bind every command."""
        commands: dict[CommandName, Handler] = {
            CommandName.CHECK: self.check,
            CommandName.BENCHMARK: self.benchmark,
            CommandName.SHOW_KERNELS: self.show_kernels,
            CommandName.SHOW_GUARDS: self.show_guards,
            CommandName.SHOW_TIMELINE: self.show_timeline,
            CommandName.SHOW_DOCUMENT: self.show_document,
            CommandName.RESTART: self.restart,
        }
        # pygls asks `issubclass` of the first parameter's type, and `Any` is no class before Python 3.11.
        for name, handler in commands.items():
            self._server.command(name.value)(functools.partial(handler))

    def check(self, *arguments: object) -> None:
        """Check a target, a document, or everything; when nothing can be checked, the person is told why."""
        subject = subject_of(arguments[0]) if arguments else None
        path, name = (subject.path, subject.target) if subject else (None, None)
        snapshot = self._session.snapshot()
        asked = [view for view in snapshot.targets.values() if _is_asked(view, path, name)]
        why = [obstacle(snapshot, view, CommandName.CHECK) for view in asked]
        if not asked:
            self._editor.tell(f"There is nothing to check in {path or 'the open files'}: it has no target.")
        elif reason := None if None in why else why[0]:
            self._editor.tell(reason)
        self._session.check(path, name)

    def benchmark(self, *arguments: object) -> None:
        """Measure a target."""
        subject = self._possible(CommandName.BENCHMARK, arguments)
        if subject is not None:
            self._session.benchmark(subject.path, subject.target or "")

    def show_kernels(self, *arguments: object) -> str | None:
        """Open the report of a target; returns its address."""
        return self._show_page(CommandName.SHOW_KERNELS, arguments)

    def show_guards(self, *arguments: object) -> str | None:
        """Open what a target is held to; returns its address."""
        return self._show_page(CommandName.SHOW_GUARDS, arguments)

    def show_timeline(self, *arguments: object) -> str | None:
        """Open where the time went; returns its address."""
        return self._show_page(CommandName.SHOW_TIMELINE, arguments)

    def _show_page(self, name: CommandName, arguments: tuple[object, ...]) -> str | None:
        subject = self._possible(name, arguments)
        return self._show(subject, PAGES[name].value) if subject is not None else None

    def show_document(self, *arguments: object) -> str | None:
        """Open a document of a target by its name; returns its address."""
        subject = self._possible(CommandName.SHOW_DOCUMENT, arguments)
        if subject is None:
            return None
        if subject.document is None:
            raise JsonRpcInvalidParams('Expected the name of a "document" of the target.')
        return self._show(subject, subject.document)

    def _show(self, subject: Subject, name: str) -> str:
        address = artifacts.Address(subject.path, subject.target or "", name)
        return self._editor.show(self._session.snapshot(), address)

    async def restart(self) -> None:
        """Start afresh."""
        await self._session.restart()

    def _possible(self, name: CommandName, arguments: tuple[object, ...]) -> Subject | None:
        """The subject of a command on a target; when the command cannot be done, the person is told why."""
        subject, snapshot = subject_of(arguments[0] if arguments else None), self._session.snapshot()
        view = snapshot.find(subject.path, subject.target or "")
        why = obstacle(snapshot, view, name) if view else f"There is no target {subject.target} in {subject.path}."
        if why is not None:
            self._editor.tell(why)
            return None
        return subject


def _is_asked(view: TargetView, path: str | None, name: str | None) -> bool:
    return path in (None, view.target.file) and name in (None, view.target.name)


def subject_of(value: Any) -> Subject:
    """What a command or a request is about.  Raises `JsonRpcInvalidParams` with a sentence."""
    try:
        return to_lsp.subject(value)
    except BadArgumentsError as error:
        raise JsonRpcInvalidParams(str(error)) from None
