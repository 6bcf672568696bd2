"""The LSP requests about generated documents: their text, and symbols, folds, links, words and definitions in them.

They are about documents of our own scheme only, so clients that can are asked to send nothing else (dynamic
registration); the others get an empty answer for every other document.  What a text is made of is asked for several
times in a row, and SASS takes a moment, so the last texts are kept.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from inductoscope.protocol import codec
from inductoscope.server import artifacts_to_lsp, extensions, to_lsp
from inductoscope.server.editor import LspEditor
from inductoscope.server.extensions import ARTIFACT_SCHEME
from inductoscope.server.features import artifacts, explore, highlighting, languages, outline
from inductoscope.server.features.artifacts import Address
from inductoscope.server.positions import Text
from inductoscope.server.session import Session
from inductoscope.server.snapshot import Snapshot
from inductoscope.server.transport import Server

KEPT = 16
"""Texts that are kept; an editor asks about the one that is being looked at."""

Handler: TypeAlias = Callable[..., Any]


class ArtifactEndpoints:
    """The handlers for generated documents of one server."""

    def __init__(self, server: Server, editor: LspEditor, session: Session) -> None:
        self._server = server
        self._editor = editor
        self._session = session
        self._texts: OrderedDict[tuple[Address, tuple[int, ...]], str] = OrderedDict()

    def register(self) -> None:
        """Bind every method."""
        handlers: dict[str, Handler] = {
            types.WORKSPACE_TEXT_DOCUMENT_CONTENT: self.content,
            types.TEXT_DOCUMENT_DEFINITION: self.definition,
            types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: self.symbols,
            types.TEXT_DOCUMENT_FOLDING_RANGE: self.folds,
            types.TEXT_DOCUMENT_DOCUMENT_LINK: self.links,
            extensions.LINES: self.lines,
        }
        for method, handler in handlers.items():
            self._server.feature(method)(functools.partial(handler))
        self._server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, artifacts_to_lsp.LEGEND)(
            functools.partial(self.words)
        )

    def registrations(self) -> list[types.Registration]:
        """What a client is to send for generated documents, where it lets itself be told so later."""
        selector = [types.TextDocumentFilterScheme(scheme=ARTIFACT_SCHEME)]
        options: dict[str, Any] = {
            types.TEXT_DOCUMENT_DEFINITION: types.DefinitionRegistrationOptions(document_selector=selector),
            types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: types.DocumentSymbolRegistrationOptions(document_selector=selector),
            types.TEXT_DOCUMENT_FOLDING_RANGE: types.FoldingRangeRegistrationOptions(document_selector=selector),
            types.TEXT_DOCUMENT_DOCUMENT_LINK: types.DocumentLinkRegistrationOptions(document_selector=selector),
            to_lsp.SEMANTIC_TOKENS: types.SemanticTokensRegistrationOptions(
                artifacts_to_lsp.LEGEND, document_selector=selector, full=True
            ),
            types.WORKSPACE_TEXT_DOCUMENT_CONTENT: types.TextDocumentContentRegistrationOptions(
                schemes=[ARTIFACT_SCHEME], id="content"
            ),
        }
        return [
            types.Registration(method, method, options[method])
            for method in self._editor.profile.registers
            if method in options
        ]

    async def content(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        """The text of a document that is made of results."""
        address, snapshot = self._address(params.uri), self._session.snapshot()
        if address is None:
            raise JsonRpcInvalidParams(f"Not an address of this server: {params.uri}")
        self._editor.follow(snapshot, address)
        return types.TextDocumentContentResult(await self._text(snapshot, address))

    async def definition(self, params: types.DefinitionParams) -> list[types.Location] | None:
        """Where a place in a document leads: what is named there, else what the line comes from."""
        address, snapshot = self._address(params.text_document.uri), self._session.snapshot()
        if address is None:
            return None  # other documents belong to other servers
        text, where = await self._text(snapshot, address), self._editor.where(snapshot)
        at = params.position
        for one, spot in artifacts.named(snapshot, address, text):
            stretch = artifacts_to_lsp.stretch(Text(text), one.line, one.start, one.end, where)
            if artifacts_to_lsp.contains(stretch, at):
                return [to_lsp.location(spot, where)]
        found = await asyncio.to_thread(artifacts.origins, snapshot, address, at.line + 1)
        if not found:
            found = tuple(spot for one, spot in artifacts.named(snapshot, address, text) if one.line == at.line + 1)
        return [to_lsp.location(spot, where) for spot in found]

    async def symbols(
        self, params: types.DocumentSymbolParams
    ) -> list[types.DocumentSymbol] | list[types.SymbolInformation] | None:
        """The parts of a document."""
        address = self._address(params.text_document.uri)
        if address is None:
            return None
        text = await self._text(self._session.snapshot(), address)
        found = await asyncio.to_thread(outline.symbols, languages.of(address.name), text)
        if self._editor.profile.nested_symbols:
            return [artifacts_to_lsp.symbol(one, Text(text), self._editor.profile.encoding) for one in found]
        return artifacts_to_lsp.flat_symbols(found, params.text_document.uri)

    async def folds(self, params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        """What can be folded in a document."""
        address = self._address(params.text_document.uri)
        if address is None:
            return None
        text = await self._text(self._session.snapshot(), address)
        found = await asyncio.to_thread(outline.folds, languages.of(address.name), text)
        return [artifacts_to_lsp.fold(one) for one in found]

    async def links(self, params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        """What a document names."""
        address, snapshot = self._address(params.text_document.uri), self._session.snapshot()
        if address is None:
            return None
        text, where = await self._text(snapshot, address), self._editor.where(snapshot)
        lines = Text(text)
        return [
            artifacts_to_lsp.link(one, spot, lines, where) for one, spot in artifacts.named(snapshot, address, text)
        ]

    async def words(self, params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        """What the words of a document are, in languages that editors do not know."""
        address = self._address(params.text_document.uri)
        if address is None:
            return None
        text = await self._text(self._session.snapshot(), address)
        found = highlighting.words(languages.of(address.name), text)
        return await asyncio.to_thread(artifacts_to_lsp.tokens, found, Text(text), self._editor.profile.encoding)

    async def lines(self, params: Any) -> dict[str, Any]:
        """All lines of a kernel's document with where they come from."""
        uri = params.get("uri") if isinstance(params, dict) else None
        address = self._address(uri if isinstance(uri, str) else "")
        if address is None:
            raise JsonRpcInvalidParams(f"Not an address of this server: {uri}")
        found: dict[str, Any] = codec.to_json(await asyncio.to_thread(explore.lines, self._session.snapshot(), address))
        return found

    def _address(self, uri: str) -> Address | None:
        return artifacts.parse(uri) or self._editor.written(uri)

    async def _text(self, snapshot: Snapshot, address: Address) -> str:
        """The text of a document; disassembling would hold up everything else."""
        key = (address, artifacts.moment(snapshot, address))
        text = self._texts.get(key)
        if text is None:
            text = await asyncio.to_thread(artifacts.content, snapshot, address)
            if not artifacts.is_page(address):  # which say how old they are
                self._texts[key] = text
            while len(self._texts) > KEPT:
                self._texts.popitem(last=False)
        return text
