"""The session's editor: an LSP client behind pygls.

Sends what the session wants shown, to clients that can show it; a client that cannot loses only that.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
from lsprotocol import types

from inductoscope.protocol import codec
from inductoscope.server import extensions, to_lsp
from inductoscope.server.clock import Clock
from inductoscope.server.diagnostics import Shown
from inductoscope.server.documents import read_source, uri_of
from inductoscope.server.extensions import Status
from inductoscope.server.features import artifacts, status
from inductoscope.server.features.artifacts import Address
from inductoscope.server.ports import Progress
from inductoscope.server.positions import Text
from inductoscope.server.progress import DelayedProgress
from inductoscope.server.snapshot import Snapshot
from inductoscope.server.to_lsp import Profile, Where
from inductoscope.server.transport import Server

logger = logging.getLogger("inductoscope.editor")


class LspEditor:
    """Implements `ports.Editor` and `progress.Channel`."""

    def __init__(self, server: Server, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self.profile = Profile()
        self.wants_status = False
        self._read: dict[Address, tuple[int | str, ...]] = {}
        self._moments: dict[Address, tuple[int, ...]] = {}
        self._written: dict[str, Address] = {}
        self._told: Status | None = None
        self._cancels: dict[str, Callable[[], None]] = {}

    def where(self, snapshot: Snapshot) -> Where:
        """How to place things for this client."""

        def uri(path: str) -> str:
            document = snapshot.documents.get(path)
            return document.uri if document else uri_of(path)

        def text(path: str) -> Text:
            document = snapshot.documents.get(path)
            return document.text if document else Text(read_source(path) or "")

        return Where(uri, text, self.profile.encoding)

    def publish(self, snapshot: Snapshot, path: str, shown: tuple[Shown, ...]) -> None:
        """Show these and only these findings in a file."""
        where, document = self.where(snapshot), snapshot.documents.get(path)
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=where.uri(path),
                version=document.version if document else None,
                diagnostics=[to_lsp.diagnostic(item, where, self.profile) for item in shown],
            )
        )

    def refresh(self) -> None:
        """Have lenses asked for again."""
        if self.profile.lens_refresh:
            self._server.workspace_code_lens_refresh(None)

    def refresh_hints(self) -> None:
        """Have inlay hints asked for again."""
        if self.profile.hint_refresh:
            self._server.workspace_inlay_hint_refresh(None)

    def update(self, snapshot: Snapshot) -> None:
        """Tell the state of everything and which documents read differently, when that is not as it was."""
        if self.wants_status:
            now = status.status(snapshot)
            if now != self._told:
                self._told = now
                self._server.protocol.notify(extensions.STATUS, codec.to_json(now))
        for address, revision in self._read.items():
            if artifacts.moment(snapshot, address) == self._moments[address]:
                continue
            self._moments[address] = artifacts.moment(snapshot, address)
            now_at = artifacts.revision(snapshot, address)
            if now_at != revision:
                self._read[address] = now_at
                params = types.TextDocumentContentRefreshParams(address.uri)
                self._server.workspace_text_document_content_refresh(params)

    def follow(self, snapshot: Snapshot, address: Address) -> None:
        """The client reads a document that is made of results, and is told from now on when it changes."""
        if self.profile.content:
            self._read[address] = artifacts.revision(snapshot, address)
            self._moments[address] = artifacts.moment(snapshot, address)

    def written(self, uri: str) -> Address | None:
        """The document that was written to the file of that URI for a client that cannot ask for it."""
        return self._written.get(uri)

    def tell(self, message: str) -> None:
        """Show the person a sentence."""
        logger.warning("%s", message)
        self._server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))

    def show(self, snapshot: Snapshot, address: Address) -> str:
        """Open a document that is made of results; clients that cannot ask for it get a file.  Returns its URI."""
        uri = address.uri
        if not self.profile.content:
            uri = uri_of(_written(address, artifacts.content(snapshot, address)))
            self._written[uri] = address
        if self.profile.show_document:
            self._server.window_show_document(types.ShowDocumentParams(uri=uri, take_focus=True))
        else:
            self.tell(f"This editor cannot be asked to open a document. It is {uri}.")
        return uri

    def progress(self, title: str, cancel: Callable[[], None]) -> Progress:
        """Show work that the person may cancel."""
        return DelayedProgress(self, self._clock, title, cancel)

    def create(self, title: str, cancel: Callable[[], None], ready: Callable[[str], None]) -> None:
        """See `progress.Channel`."""
        if not self.profile.progress:
            return
        token = f"inductoscope-{uuid.uuid4()}"
        self._cancels[token] = cancel
        request = self._server.protocol.send_request(
            types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token)
        )

        def answered(_: Any) -> None:
            if request.cancelled() or request.exception() is not None:
                logger.warning("the client refused to show progress for %s", title)
                self._cancels.pop(token, None)
            else:
                ready(token)

        request.add_done_callback(answered)

    def begin(self, token: str, title: str) -> None:
        """See `progress.Channel`."""
        self._send_progress(token, types.WorkDoneProgressBegin(title=title, cancellable=True))

    def report(self, token: str, text: str) -> None:
        """See `progress.Channel`."""
        self._send_progress(token, types.WorkDoneProgressReport(message=text, cancellable=True))

    def end(self, token: str, text: str) -> None:
        """See `progress.Channel`."""
        self._cancels.pop(token, None)
        self._send_progress(token, types.WorkDoneProgressEnd(message=text or None))

    def cancelled(self, token: str | int) -> None:
        """The person cancelled."""
        cancel = self._cancels.pop(str(token), None)
        if cancel is not None:
            cancel()

    def _send_progress(self, token: str, value: Any) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(token=token, value=value))


def _written(address: Address, text: str) -> str:
    """The path of a file with that text; the same address is always the same file."""
    name = hashlib.sha256(address.uri.encode()).hexdigest()[:16]
    path = Path(platformdirs.user_cache_dir("inductoscope")) / "documents" / name / address.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)
