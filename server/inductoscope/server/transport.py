"""JSON-RPC over the streams: pygls, with its gaps mended.

- Writes are serialised and stop once the output is closed.
- Messages are given their types when they are handled, not while the JSON is parsed, so that a `jsonrpc` key inside
  parameters means nothing, and a request that does not fit is answered with an error.
- Requests before `initialize` and after `shutdown` are refused as LSP says, and `exit` gives the exit code.
- Errors carry a sentence to the client; the traceback goes to the log.
- What is announced can be put right before it is sent: pygls leaves out `workspace/textDocumentContent`, and announces
  everything that has a handler.

Knows nothing of what the messages mean to the product.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

logger = logging.getLogger("inductoscope.transport")


@attrs.define
class CustomRequest:
    """A request that lsprotocol has no type for; `params` are plain JSON."""

    id: int | str
    method: str
    jsonrpc: str
    params: Any = None


@attrs.define
class CustomNotification:
    """A notification that lsprotocol has no type for; `params` are plain JSON."""

    method: str
    jsonrpc: str
    params: Any = None


class SerialWriter:
    """Writes whole messages one after the other; after the output was closed, nothing."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._lock = threading.Lock()
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write one message, or drop it when nobody can read it any more."""
        with self._lock:
            if self._closed:
                return
            try:
                self._writer.write(data)
            except (OSError, ValueError):
                self._closed = True
                logger.warning("the client closed the connection")

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._writer.close()


class Protocol(LanguageServerProtocol):
    """See the module."""

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        self.exit_code: int | None = None
        self.announcing: Callable[[types.ServerCapabilities], None] = lambda capabilities: None
        self._initialized = False

    def set_writer(self, writer: Any, include_headers: bool = True) -> None:
        """Write through a `SerialWriter`."""
        super().set_writer(SerialWriter(writer), include_headers)

    def structure_message(self, data: dict[str, Any]) -> dict[str, Any]:
        """Called for every object inside a message while it is parsed: leave it alone."""
        return data

    def handle_message(self, message: Any) -> None:
        """Give a message its type, refuse it, or handle it."""
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            logger.error("not a JSON-RPC message: %.200r", message)
            return
        method, msg_id = message.get("method"), message.get("id")
        refusal = self._refusal(method) if isinstance(method, str) else None
        if refusal is not None:
            if msg_id is not None:
                self._send_response(msg_id, error=refusal)
            return
        try:
            typed = self._typed(message)
        except JsonRpcException as error:
            logger.error("a message that does not fit: %.200r", message)
            if method is not None and msg_id is not None:
                self._send_response(msg_id, error=error.to_response_error())
            return
        super().handle_message(typed)

    def _typed(self, message: dict[str, Any]) -> Any:
        method = message.get("method")
        if isinstance(method, str) and self.get_message_type(method) is None:
            custom = CustomRequest if "id" in message else CustomNotification
            fields = {field.name for field in attrs.fields(custom)}
            return custom(**{name: value for name, value in message.items() if name in fields})
        return super().structure_message(message)

    def _refusal(self, method: str) -> types.ResponseError | None:
        if self._shutdown and method != types.EXIT:
            return types.ResponseError(types.ErrorCodes.InvalidRequest, "The server was told to shut down.")
        if not self._initialized and method not in (types.INITIALIZE, types.EXIT):
            return types.ResponseError(types.ErrorCodes.ServerNotInitialized, "The first request must be initialize.")
        if self._initialized and method == types.INITIALIZE:
            return types.ResponseError(types.ErrorCodes.InvalidRequest, "The server is initialized already.")
        return None

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is not None and error.data is not None:
            logger.error("request %s failed: %s\n%s", msg_id, error.message, error.data)
            sentence = error.message.splitlines()[0] if error.message else "The request failed"
            error = types.ResponseError(error.code, f"{sentence} (the server's log has the details)")
        super()._send_response(msg_id, result, error)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Let what is announced be put right."""
        self._initialized = True
        result = yield from super().lsp_initialize(params)
        self.announcing(result.capabilities)
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Remember the exit code, which pygls loses."""
        self.exit_code = 0 if self._shutdown else 1
        yield from super().lsp_exit(*args)


class Server(LanguageServer):
    """A language server whose own mishaps go to the log, never into the person's way."""

    protocol: Protocol

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            name, version, text_document_sync_kind=types.TextDocumentSyncKind.Full, protocol_cls=Protocol, max_workers=2
        )

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log it; requests have been answered with an error."""
        if not isinstance(error, JsonRpcMethodNotFound):
            logger.error("%s: %s", getattr(source, "__name__", source), error)
