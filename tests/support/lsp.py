"""A strict LSP client: a server process over stdio, the capabilities of a real editor, nothing left unnoticed.

What the client did not claim, and what the server must not send, fails the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import json
import os
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Union

from lsprotocol import types
from lsprotocol.converters import get_converter
from pytest_lsp import LanguageClient, LspSpecificationWarning, make_test_lsp_client

TIMEOUT_S = 240
SERVER = [sys.executable, "-m", "inductoscope", "serve", "--log-level", "warning"]
CAPABILITIES = Path(__file__).parent / "capabilities"


class Profile(enum.Enum):
    """Editors, by the file of what they said in `initialize`."""

    VSCODE = "vscode-1.139.1_languageclient-11.0.0"
    NEOVIM = "neovim-0.11.4"
    OLD_NEOVIM = "neovim-0.7.2"

    @property
    def capabilities(self) -> types.ClientCapabilities:
        data = json.loads((CAPABILITIES / f"{self.value}.json").read_text())
        return get_converter().structure(data, types.ClientCapabilities)


class Editor:
    """A client with one workspace folder."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.refreshes = 0
        self.registered: list[str] = []
        self.refreshed: list[str] = []
        self.statuses: list[Any] = []
        actions = Union[types.Command, types.CodeAction]  # noqa: UP007  # the key under which lsprotocol has its own
        client.protocol._converter.register_structure_hook(actions, _structure_action)
        client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(functools.partial(self._refresh))
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(functools.partial(self._register))
        client.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH)(functools.partial(self._refresh_content))
        client.feature("inductoscope/status")(functools.partial(self._status))

    def _refresh(self, params: None) -> None:
        self.refreshes += 1

    def _register(self, params: types.RegistrationParams) -> None:
        self.registered += [item.method for item in params.registrations]

    def _refresh_content(self, params: types.TextDocumentContentRefreshParams) -> None:
        self.refreshed.append(params.uri)

    def _status(self, params: Any) -> None:
        self.statuses.append(params)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    def open(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, name: str, version: int, text: str) -> None:
        document = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def save(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(self.document(name)))

    async def request(self, method: str, params: Any) -> Any:
        answer = self.client.protocol.send_request_async(method, params)
        return await asyncio.wait_for(answer, TIMEOUT_S)

    async def sync(self, name: str, version: int = 1) -> Any:
        return await self.request("inductoscope/sync", {"uri": self.uri(name), "version": version})

    def diagnostics(self, name: str) -> list[types.Diagnostic]:
        return list(self.client.diagnostics.get(self.uri(name), []))

    async def hover(self, name: str, line: int, character: int = 4) -> str | None:
        """The text of a hover at a 1-based line."""
        position = types.Position(line - 1, character)
        found = await self.request(types.TEXT_DOCUMENT_HOVER, types.HoverParams(self.document(name), position))
        return None if found is None else found.contents.value

    async def lenses(self, name: str) -> list[types.CodeLens]:
        """All lenses, those without a command resolved as an editor does when they come into view."""
        params = types.CodeLensParams(self.document(name))
        found = await self.request(types.TEXT_DOCUMENT_CODE_LENS, params) or []
        return [lens if lens.command else await self.request(types.CODE_LENS_RESOLVE, lens) for lens in found]

    async def actions(self, name: str, line: int, only: list[str] | None = None) -> list[types.CodeAction]:
        at = types.Position(line - 1, 0)
        context = types.CodeActionContext([], only=only)
        params = types.CodeActionParams(self.document(name), types.Range(at, at), context)
        return list(await self.request(types.TEXT_DOCUMENT_CODE_ACTION, params) or [])

    async def command(self, name: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(name, arguments=list(arguments))
        return await self.request(types.WORKSPACE_EXECUTE_COMMAND, params)


def _structure_action(value: Any, _: Any) -> types.CodeAction | types.Command:
    """lsprotocol takes every code action that has a command for a bare command; the two differ in what `command` is."""
    bare = isinstance(value.get("command"), str)
    return get_converter().structure(value, types.Command if bare else types.CodeAction)


@contextlib.asynccontextmanager
async def editor(
    folder: Path, profile: Profile = Profile.VSCODE, settings: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Editor]:
    """An editor connected to a server of its own; leaving shuts the server down and looks at how it ended."""
    client = make_test_lsp_client()
    client.set_configuration({"inductoscope": settings or {}})
    session = Editor(client, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        await client.start_io(*SERVER, env={**os.environ, "XDG_CACHE_HOME": str(folder / ".cache")})
        try:
            await asyncio.wait_for(
                client.initialize_session(
                    types.InitializeParams(
                        capabilities=profile.capabilities,
                        root_uri=folder.as_uri(),
                        workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
                        initialization_options={"settings": settings or {}, **options},
                    )
                ),
                TIMEOUT_S,
            )
            yield session
            await asyncio.wait_for(client.shutdown_session(), TIMEOUT_S)
            assert client._server is not None and client._server.returncode == 0
            assert client.error is None
        finally:
            if client._server is not None and client._server.returncode is None:
                client._server.kill()
            await client.stop()
