"""Which LSP message does what: unpacks parameters, calls the session or a feature, packs the answer.

Requests are functions of a snapshot and answer at once; whatever takes long is started in the session and shown when it
is there.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from inductoscope.protocol import codec
from inductoscope.server import extensions, settings, to_lsp
from inductoscope.server.artifact_endpoints import ArtifactEndpoints
from inductoscope.server.command_endpoints import CommandEndpoints, subject_of
from inductoscope.server.documents import path_of, uri_of
from inductoscope.server.editor import LspEditor
from inductoscope.server.extensions import ARTIFACT_SCHEME, SyncedTarget, SyncResult
from inductoscope.server.features import actions, explore, hover, inlay_hints, lens
from inductoscope.server.features.actions import ActionKind
from inductoscope.server.features.inlay_hints import InlayHint
from inductoscope.server.folders import NO_FOLDER, Folders
from inductoscope.server.session import Session
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Snapshot
from inductoscope.server.transport import Server
from inductoscope.server.watching import Following

logger = logging.getLogger("inductoscope.endpoints")

SECTION = "inductoscope"

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of other people's code, which is not for the person reading it to mend."""

Handler: TypeAlias = Callable[..., Any]

CONFIGURATION_TIMEOUT_S = 10.0
"""How long a client may take to tell its settings before those it started with are used."""


class Endpoints:
    """The handlers of one server."""

    def __init__(
        self, server: Server, editor: LspEditor, folders: Folders, session: Session, following: Following
    ) -> None:
        self._server = server
        self._editor = editor
        self._folders = folders
        self._session = session
        self._following = following
        self._start_values: dict[str, Any] = {}
        self._pushed: Any = None
        self._told: set[str] = set()
        self._artifacts = ArtifactEndpoints(server, editor, session)
        self._commands = CommandEndpoints(server, editor, session)

    def register(self) -> None:
        """Bind every method and command."""
        handlers: dict[str, Handler] = {
            types.INITIALIZE: self.initialize,
            types.INITIALIZED: self.initialized,
            types.SHUTDOWN: self.shutdown,
            types.TEXT_DOCUMENT_DID_OPEN: self.did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self.did_change,
            types.TEXT_DOCUMENT_DID_SAVE: self.did_save,
            types.TEXT_DOCUMENT_DID_CLOSE: self.did_close,
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES: self.did_change_files,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: self.did_change_configuration,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self.did_change_folders,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: self.cancel_progress,
            types.TEXT_DOCUMENT_HOVER: self.hover,
            types.TEXT_DOCUMENT_CODE_LENS: self.code_lens,
            types.CODE_LENS_RESOLVE: self.resolve_lens,
            types.TEXT_DOCUMENT_INLAY_HINT: self.inlay_hint,
            types.INLAY_HINT_RESOLVE: self.resolve_hint,
            extensions.SYNC: self.sync,
            extensions.EXPLORE: self.explore,
            extensions.TRUST: self.trust,
        }
        # pygls marks what it registers, which only a wrapper of a bound method lets it do.
        for method, handler in handlers.items():
            self._server.feature(method)(functools.partial(handler))
        self._artifacts.register()
        self._server.protocol.announcing = self._announce
        kinds = [kind.value for kind in ActionKind]
        self._server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))(
            functools.partial(self.code_action)
        )
        self._commands.register()

    # Life

    def initialize(self, params: types.InitializeParams) -> None:
        """Learn what the client can do, and the settings to start with."""
        options = params.initialization_options if isinstance(params.initialization_options, dict) else {}
        encoding = self._server.workspace.position_encoding
        self._editor.profile = to_lsp.profile(params.capabilities, getattr(encoding, "value", encoding))
        self._editor.wants_status = options.get("status") is True
        self._session.trust(Trust.UNTRUSTED if options.get("trusted") is False else Trust.TRUSTED)
        values = options.get("settings")
        self._start_values = values if isinstance(values, dict) else {}
        for uri in self._server.workspace.folders:
            self._folders.add(path_of(uri) or NO_FOLDER)

    async def initialized(self, _: types.InitializedParams) -> None:
        """Learn the settings; only then may anything run."""
        registrations = [*self._artifacts.registrations(), *self._watching(), *self._listening()]
        if registrations:
            self._server.client_register_capability(types.RegistrationParams(registrations))
        await self._pull_settings()
        self._session.start()

    async def shutdown(self, _: None) -> None:
        """End everything that runs."""
        await self._session.shutdown()

    def _watching(self) -> list[types.Registration]:
        if not self._editor.profile.watches_files:
            return []
        watchers = [types.FileSystemWatcher(pattern) for pattern in ("**/*.py", "**/pyproject.toml")]
        watchers.append(types.FileSystemWatcher("**/*", types.WatchKind.Delete))  # nothing else tells of folders
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        return [types.Registration("watch-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)]

    def _listening(self) -> list[types.Registration]:
        """Some clients tell of changed settings only when they are asked to."""
        if not self._editor.profile.tells_settings:
            return []
        options = types.DidChangeConfigurationRegistrationOptions(SECTION)
        return [types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)]

    def _announce(self, capabilities: types.ServerCapabilities) -> None:
        """Leave out what is registered later for generated documents only."""
        registered = self._editor.profile.registers
        for method, name in to_lsp.PROVIDERS.items():
            if method in registered:
                setattr(capabilities, name, None)
        content = types.WORKSPACE_TEXT_DOCUMENT_CONTENT
        if self._editor.profile.content and content not in registered and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(schemes=[ARTIFACT_SCHEME])

    # Settings

    async def did_change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        """Settings changed: ask for them, or take what clients that cannot be asked have sent."""
        if not self._editor.profile.configuration:
            values = params.settings if isinstance(params.settings, dict) else {}
            self._pushed = values.get(SECTION, values)
        await self._pull_settings()

    async def did_change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Folders came and went."""
        for removed in params.event.removed:
            await self._folders.remove(path_of(removed.uri) or NO_FOLDER)
        for added in params.event.added:
            self._folders.add(path_of(added.uri) or NO_FOLDER)
        await self._pull_settings()

    async def _pull_settings(self) -> None:
        folders = (NO_FOLDER, *self._folders.paths)
        answers: list[Any] = [self._pushed] * len(folders)
        if self._editor.profile.configuration:
            items = [types.ConfigurationItem(uri_of(folder) if folder else None, SECTION) for folder in folders]
            request = self._server.workspace_configuration_async(types.ConfigurationParams(items))
            try:
                answers = list(await asyncio.wait_for(request, CONFIGURATION_TIMEOUT_S))
            except (asyncio.TimeoutError, JsonRpcException) as error:
                logger.warning("the client does not tell its settings: %r", error)
        for folder, answer in zip(folders, answers, strict=False):
            await self._configure(folder, answer)

    async def _configure(self, folder: str, values: Any) -> None:
        told = {key: value for key, value in values.items() if value is not None} if isinstance(values, dict) else {}
        read = settings.read({**self._start_values, **told})
        for problem in read.problems:
            if problem not in self._told:
                self._told.add(problem)
                self._editor.tell(problem)
        await self._session.configure(folder, read.settings)

    def trust(self, params: Any) -> None:
        """The person granted or withdrew trust."""
        trusted = isinstance(params, dict) and params.get("trusted") is True
        self._session.trust(Trust.TRUSTED if trusted else Trust.UNTRUSTED)

    # Documents

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document was opened."""
        document = params.text_document
        path = path_of(document.uri)
        if path is not None and document.language_id == "python" and not _INSTALLED & set(Path(path).parts):
            self._session.open(document.uri, path, document.version, document.text)

    def did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """A document has a new text; with full synchronisation the last change is all of it."""
        path = self._open_path(params.text_document.uri)
        if path is not None and params.content_changes:
            self._session.change(path, params.text_document.version, params.content_changes[-1].text)

    def did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """A document was saved."""
        path = self._open_path(params.text_document.uri)
        if path is not None:
            self._session.save(path)

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """A document was closed."""
        path = self._open_path(params.text_document.uri)
        if path is not None:
            self._session.close(path)

    def did_change_files(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Files changed, perhaps by somebody else."""
        paths = (path_of(change.uri) for change in params.changes)
        self._following.notice(path for path in paths if path is not None)

    def _open_path(self, uri: str) -> str | None:
        path = path_of(uri)
        return path if path is not None and self._session.snapshot().documents.get(path) else None

    # Requests

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """What is known of a line."""
        path, snapshot = self._open_path(params.text_document.uri), self._session.snapshot()
        line = params.position.line + 1
        if path is not None:
            self._session.look(path, line)
        found = hover.hover(snapshot, path, line) if path else None
        if path is None or found is None:
            return None
        return to_lsp.hover(found, path, self._editor.where(snapshot), self._editor.profile)

    def code_lens(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """What stands above the targets."""
        path, snapshot = self._open_path(params.text_document.uri), self._session.snapshot()
        if path is None:
            return []
        where, client = self._editor.where(snapshot), self._editor.profile
        return [to_lsp.code_lens(item, path, where, client) for item in lens.lenses(snapshot, path)]

    def resolve_lens(self, params: types.CodeLens) -> types.CodeLens:
        """A lens with what it says now."""
        snapshot, kept = self._session.snapshot(), to_lsp.kept(params.data)
        path = self._open_path(kept.uri) if kept is not None else None
        if path is None or kept is None:
            return types.CodeLens(params.range, types.Command("", ""))  # the document was closed meanwhile
        now = (item for item in lens.lenses(snapshot, path) if to_lsp.lens_key(item) == kept.key)
        item = next(now, None)
        if item is None:
            return types.CodeLens(params.range, types.Command("", ""))  # its target is gone
        return to_lsp.code_lens(item, path, self._editor.where(snapshot), to_lsp.WHOLE)

    def inlay_hint(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """What the variables and lines of a range are."""
        path, snapshot = self._open_path(params.text_document.uri), self._session.snapshot()
        if path is None:
            return []
        first, last = params.range.start.line + 1, params.range.end.line + 1
        found = (hint for hint in inlay_hints.inlay_hints(snapshot, path) if first <= hint.line <= last)
        if self._editor.profile.resolves_hints:
            return [to_lsp.inlay_hint(hint, path, self._editor.where(snapshot)) for hint in found]
        return [self._whole_hint(snapshot, path, hint) for hint in found]

    def resolve_hint(self, params: types.InlayHint) -> types.InlayHint:
        """A hint with its tooltip and where it leads; as it is when it is gone."""
        snapshot, kept = self._session.snapshot(), to_lsp.kept(params.data)
        path = self._open_path(kept.uri) if kept is not None else None
        if path is None or kept is None:
            return params
        now = (hint for hint in inlay_hints.inlay_hints(snapshot, path) if to_lsp.hint_key(hint) == kept.key)
        hint = next(now, None)
        if hint is None:
            return params
        return attrs.evolve(self._whole_hint(snapshot, path, hint), position=params.position)  # the client may move it

    def _whole_hint(self, snapshot: Snapshot, path: str, hint: InlayHint) -> types.InlayHint:
        leads_to = inlay_hints.leads_to(snapshot, hint) if self._editor.profile.content else None
        return to_lsp.whole_hint(hint, path, self._editor.where(snapshot), self._editor.profile, leads_to)

    def code_action(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done at a place."""
        path, snapshot, client = (
            self._open_path(params.text_document.uri),
            self._session.snapshot(),
            self._editor.profile,
        )
        if path is None or not client.action_literals:
            return []
        first, last = params.range.start.line + 1, params.range.end.line + 1
        found = actions.actions(snapshot, path, first, last, to_lsp.kinds(params.context.only))
        possible = (item for item in found if client.disabled_actions or item.disabled is None)
        return [to_lsp.code_action(item, self._editor.where(snapshot), client) for item in possible]

    async def sync(self, params: Any) -> dict[str, Any]:
        """Answer when all is done for a document."""
        subject = subject_of(params)
        snapshot = await self._session.settled(subject.path, subject.version)
        document = snapshot.documents.get(subject.path)
        targets = tuple(
            SyncedTarget(view.target.name, view.settled.report.status.value if view.settled else None)
            for view in snapshot.targets_in(subject.path)
        )
        done: dict[str, Any] = codec.to_json(SyncResult(document.version if document else None, targets))
        return done

    async def explore(self, params: Any) -> dict[str, Any]:
        """All facts of a document; of a large one there are many."""
        snapshot, path = self._session.snapshot(), subject_of(params).path
        found: dict[str, Any] = await asyncio.to_thread(lambda: codec.to_json(explore.explore(snapshot, path)))
        return found

    # Progress

    def cancel_progress(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The person cancelled what a progress shows."""
        self._editor.cancelled(params.token)
