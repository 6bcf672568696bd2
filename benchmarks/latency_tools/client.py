"""An editor as far as its messages go: a server process over stdio, in plain JSON, with the time of what it says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

TIMEOUT_S = 600.0

Diagnostics = list[dict[str, Any]]


class Client:
    """A client with one workspace folder, in which documents are opened, edited and saved."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self.folder = folder
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._watchers: list[tuple[str, Callable[[Diagnostics], bool], asyncio.Future[float]]] = []
        self._versions: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._reader = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    async def initialize(self, settings: dict[str, Any]) -> None:
        """Open the workspace."""
        folder = {"uri": self.folder.as_uri(), "name": self.folder.name}
        options = {"settings": settings}
        params = {"processId": os.getpid(), "rootUri": folder["uri"], "workspaceFolders": [folder]}
        await self.request("initialize", {**params, "capabilities": {}, "initializationOptions": options})
        await self.notify("initialized", {})

    async def open(self, name: str) -> None:
        """Show a file."""
        text = (self.folder / name).read_text(encoding="utf-8")
        self._versions[name], self._texts[name] = 1, text
        item = {"uri": self._uri(name), "languageId": "python", "version": 1, "text": text}
        await self.notify("textDocument/didOpen", {"textDocument": item})

    async def save(self, name: str, text: str) -> float:
        """Change the whole text and save it; when that was, by `time.perf_counter`."""
        self._versions[name] += 1
        self._texts[name] = text
        document = {"uri": self._uri(name), "version": self._versions[name]}
        begun = time.perf_counter()
        change = {"textDocument": document, "contentChanges": [{"text": text}]}
        await self.notify("textDocument/didChange", change)
        (self.folder / name).write_text(text, encoding="utf-8")
        await self.notify("textDocument/didSave", {"textDocument": {"uri": document["uri"]}})
        return begun

    async def settled(self, name: str) -> Any:
        """Wait until nothing of a document is left to do; its targets."""
        params = {"uri": self._uri(name), "version": self._versions[name]}
        return await self.request("inductoscope/sync", params)

    async def hover(self, name: str, line: int) -> float:
        """Ask for a hover at a 1-based line; the seconds until the answer."""
        begun = time.perf_counter()
        position = {"line": line - 1, "character": 6}
        await self.request("textDocument/hover", {"textDocument": {"uri": self._uri(name)}, "position": position})
        return time.perf_counter() - begun

    def when_shown(self, name: str, fits: Callable[[Diagnostics], bool]) -> asyncio.Future[float]:
        """When (`time.perf_counter`) diagnostics of a file that fit arrive, from now on."""
        arrived: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._watchers.append((self._uri(name), fits, arrived))
        return arrived

    async def request(self, method: str, params: Any) -> Any:
        """The result of a request.  Raises `RuntimeError` where the server answers with an error."""
        number = len(self._answers) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._send({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._answers[number], TIMEOUT_S)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result")

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        await self._send({"method": method, "params": params})

    async def shut_down(self) -> None:
        """End the server in order."""
        await self.request("shutdown", None)
        await self.notify("exit", None)
        await asyncio.wait_for(self._process.wait(), TIMEOUT_S)
        self._reader.cancel()

    def _uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await self._process.stdin.drain()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                header = (await self._process.stdout.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                return
            length = next(int(line[15:]) for line in header.splitlines() if line.startswith("Content-Length:"))
            self._hear(json.loads(await self._process.stdout.readexactly(length)), time.perf_counter())

    def _hear(self, message: dict[str, Any], now: float) -> None:
        if "method" not in message:
            self._answers[message["id"]].set_result(message)
        elif message["method"] == "textDocument/publishDiagnostics":
            params = message["params"]
            for uri, fits, arrived in self._watchers:
                if not arrived.done() and uri == params["uri"] and fits(params["diagnostics"]):
                    arrived.set_result(now)


@contextlib.asynccontextmanager
async def server(folder: Path, caches: Path) -> AsyncIterator[Client]:
    """A server of this interpreter for a workspace; what it keeps on disk lies in `caches`."""
    words = [sys.executable, "-m", "inductoscope", "serve", "--log-level", "warning"]
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
        env={**os.environ, "XDG_CACHE_HOME": str(caches)},
    )
    client = Client(process, folder)
    try:
        yield client
        await client.shut_down()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
