"""A client that takes nothing which it did not claim, and lets nothing go unread.

The server runs in this process, on streams of its own, with a worker that answers at once; so a whole conversation
takes a fraction of a second.  What the client may be sent follows from its capabilities alone (`MAY_SEND`); anything
else is a violation, and so is whatever is left unread at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from inductoscope.protocol.messages import FindingFound, Hello
from inductoscope.protocol.report import TargetReport
from inductoscope.server.app import build
from inductoscope.server.settings import Settings
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest

TIMEOUT_S = 30
HELLO = Hello(1, "3.11.7", "/usr/bin/python3", 1, "2.13.0", "3.7.1")


def claims(capabilities: Any, path: str) -> bool:
    """Whether the flag or object at a dotted path is there and not false."""
    for name in path.split("."):
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return capabilities not in (None, False)


def _always(_: Any) -> bool:
    return True


def _if(path: str) -> Callable[[Any], bool]:
    return lambda capabilities: claims(capabilities, path)


MAY_SEND: dict[str, Callable[[Any], bool]] = {
    "textDocument/publishDiagnostics": _always,
    "window/showMessage": _always,
    "window/logMessage": _always,
    "client/registerCapability": _always,  # each registration is looked at
    "workspace/configuration": _if("workspace.configuration"),
    "workspace/codeLens/refresh": _if("workspace.codeLens.refreshSupport"),
    "workspace/inlayHint/refresh": _if("workspace.inlayHint.refreshSupport"),
    "workspace/textDocumentContent/refresh": _if("workspace.textDocumentContent"),
    "window/workDoneProgress/create": _if("window.workDoneProgress"),
    "$/progress": _if("window.workDoneProgress"),
    "window/showDocument": _if("window.showDocument.support"),
}
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "workspace/configuration": lambda params: [None] * len(params["items"]),
    "window/showDocument": lambda params: {"success": True},
}


class AnsweringRunner:
    """Implements `ports.Runner`: each run finds what `report` says, findings first."""

    def __init__(self, report: Callable[[RunRequest], TargetReport]) -> None:
        self._report = report

    def interpreter(self, file: str) -> tuple[str, ...] | None:
        return ("/usr/bin/python3",)

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        report = self._report(request)
        for finding in report.findings:
            on_event(FindingFound(1, finding))
        return RunOutcome(report, None, HELLO, ())

    async def close(self) -> None:
        pass


class StrictClient:
    """See the module."""

    def __init__(self, capabilities: Any, reader: asyncio.StreamReader, writer: Any) -> None:
        self.capabilities = capabilities
        self.answers = dict(ANSWERS)
        self.unread: list[tuple[str, Any]] = []
        self.violations: list[str] = []
        self._arrived = asyncio.Condition()
        self._reader = reader
        self._writer = writer
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._task = asyncio.ensure_future(self._read())

    async def request(self, method: str, params: Any) -> Any:
        """The result; an error fails the test."""
        number = len(self._answers) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._answers[number], TIMEOUT_S)
        assert "error" not in answer, answer
        return answer["result"]

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    async def next(self, method: str) -> Any:
        """The parameters of the next message of that method that was not read yet, waiting for it."""
        async with self._arrived:
            await asyncio.wait_for(
                self._arrived.wait_for(lambda: any(name == method for name, _ in self.unread)), TIMEOUT_S
            )
        return self.take(method)[-1]

    def take(self, method: str) -> list[Any]:
        """The parameters of all messages of that method that were not read yet."""
        found = [params for name, params in self.unread if name == method]
        self.unread = [one for one in self.unread if one[0] != method]
        return found

    async def close(self) -> None:
        """Shut the server down; whatever it should not have sent, or was not read, fails the test."""
        await self.request("shutdown", None)
        self.notify("exit", None)
        await asyncio.wait_for(self._task, TIMEOUT_S)
        assert self.violations == []
        assert self.unread == []

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._writer.flush()

    async def _read(self) -> None:
        while True:
            try:
                header = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                return
            length = next(int(line[15:]) for line in header.splitlines() if line.startswith("Content-Length:"))
            self._take_in(json.loads(await self._reader.readexactly(length)))
            async with self._arrived:
                self._arrived.notify_all()

    def _take_in(self, message: Any) -> None:
        if "method" not in message:
            self._answers[message["id"]].set_result(message)
            return
        method, params = message["method"], message.get("params")
        if not MAY_SEND.get(method, lambda _: False)(self.capabilities):
            self.violations.append(method)
        self.unread.append((method, params))
        if method == "client/registerCapability":
            self.violations += [
                one["method"] for one in params["registrations"] if not self._can_register(one["method"])
            ]
        if "id" in message:
            self._send({"id": message["id"], "result": self.answers.get(method, lambda _: None)(params)})

    def _can_register(self, method: str) -> bool:
        area, _, name = method.partition("/")
        return claims(self.capabilities, f"{area}.{name}.dynamicRegistration")


@contextlib.asynccontextmanager
async def strict_client(
    folder: Path,
    capabilities: Any,
    report: Callable[[RunRequest], TargetReport],
    answers: dict[str, Callable[[Any], Any]] | None = None,
) -> AsyncIterator[tuple[StrictClient, Any]]:
    """A client of a server for `folder`, and what `initialize` answered; leaving looks at what was sent.

    `answers` are those of the client to requests of the server, by method.
    """
    to_server, from_client = os.pipe()
    to_client, from_server = os.pipe()

    def make(_: Settings) -> AnsweringRunner:
        return AnsweringRunner(report)

    def serve() -> None:
        with os.fdopen(to_server, "rb") as stdin, os.fdopen(from_server, "wb") as stdout:
            build(make).start_io(stdin, stdout)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**24)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_client, "rb")
    )
    with os.fdopen(from_client, "wb") as writer:
        client = StrictClient(capabilities, reader, writer)
        client.answers |= answers or {}
        answer = await client.request(
            "initialize",
            {
                "processId": None,
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
                "capabilities": capabilities,
                "initializationOptions": {"settings": {"device": "sim:H200"}},
            },
        )
        client.notify("initialized", {})
        yield client, answer
        await client.close()
    transport.close()
    await asyncio.to_thread(thread.join, TIMEOUT_S)
