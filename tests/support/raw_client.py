"""A client that knows JSON-RPC and nothing of LSP, to say what no library would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

TIMEOUT_S = 60


class RawServer:
    """A server process, spoken to in plain JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._notifications: asyncio.Queue[Any] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    async def request(self, method: str, params: Any) -> Any:
        """The whole answer; `params` of None are left out."""
        number = len(self._answers) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return await asyncio.wait_for(self._answers[number], TIMEOUT_S)

    async def notify(self, method: str, params: Any) -> None:
        await self._send({"method": method, "params": params})

    async def told(self, method: str) -> Any:
        """The parameters of the next notification of that name; others before it are dropped."""
        while (message := await asyncio.wait_for(self._notifications.get(), TIMEOUT_S))["method"] != method:
            pass
        return message["params"]

    async def exit(self) -> int:
        """Say `exit`; the exit code."""
        await self.notify("exit", None)
        return await asyncio.wait_for(self._process.wait(), TIMEOUT_S)

    async def end_input(self) -> int:
        """Close the server's input; the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await asyncio.wait_for(self._process.wait(), TIMEOUT_S)

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._reader.cancel()

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await self._process.stdin.drain()

    async def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            try:
                header = (await stream.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                return
            length = next(int(line[15:]) for line in header.splitlines() if line.startswith("Content-Length:"))
            message = json.loads(await stream.readexactly(length))
            if "method" not in message:
                self._answers[message["id"]].set_result(message)
            else:
                self._notifications.put_nowait(message)


@contextlib.asynccontextmanager
async def raw_server(folder: Path | None, options: Any = None) -> AsyncIterator[RawServer]:
    """A server, initialized for a folder with these options, unless the folder is None."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "inductoscope", "serve", "--log-level", "error"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**24,
    )
    server = RawServer(process)
    try:
        if folder is not None:
            params = {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}}
            await server.request("initialize", {**params, "initializationOptions": options})
            await server.notify("initialized", {})
        yield server
    finally:
        await server.stop()
