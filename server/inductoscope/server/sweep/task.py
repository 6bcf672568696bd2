"""What runs on a node of a Ray cluster: put the files there, start one worker, return its last message.

Travels by value, so that a node needs Ray, torch and nothing of Inductoscope: standard library only, and nothing is
imported from this package.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LENGTH = ">I"  # no struct.Struct, which does not travel
_LAST_WORDS = 400


class WorkerLostError(OSError):
    """The worker was killed, as on a node that runs out of memory or is taken away.  Worth another try."""


class WorkerEndedError(OSError):
    """The worker ended by itself without its last message, or took too long.  It would again."""


def run(ours: Mapping[str, bytes], theirs: Mapping[str, bytes], worker: str, request: str) -> str:
    """The worker's hello and its last message, as a JSON list of messages in the paths of whoever asked.

    `ours` and `theirs` are files by path, the worker's and the program's.  `worker` is a JSON object: the path
    `bootstrap`, the folders `parts` of the namespace package, the interpreter `python` (null for this one), `timeout_s`
    and `cwd`.  `request` is the message `Run` as JSON.  Raises `WorkerLostError` and `WorkerEndedError`.
    """
    folder = Path(tempfile.mkdtemp(prefix="inductoscope-sweep-"))
    root = folder / "files"
    try:
        for path, data in {**ours, **theirs}.items():
            place = Path(f"{root}{path}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        asked, given = json.loads(request), json.loads(worker)
        body = asked["body"]
        body["target"]["file"] = f"{root}{body['target']['file']}"
        body["search_paths"] = [f"{root}{path}" for path in body["search_paths"]]
        command = [given["python"] or sys.executable, "-u", f"{root}{given['bootstrap']}"]
        said = _converse(command, asked, folder, given)
        return said.replace(str(root), "")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _converse(command: list[str], asked: Any, folder: Path, given: Mapping[str, Any]) -> str:
    child_read, to_worker = os.pipe()
    from_worker, child_write = os.pipe()
    temporary = folder / "tmp"
    temporary.mkdir()
    cwd = Path(f"{folder / 'files'}{given['cwd']}")
    cwd.mkdir(parents=True, exist_ok=True)
    parts = [f"{folder / 'files'}{part}" for part in given["parts"]]
    own = {name: str(temporary) for name in ("TMPDIR", "XDG_CACHE_HOME", "TRITON_HOME")}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*command, str(child_read), str(child_write), *parts],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env={**os.environ, **own},
            pass_fds=(child_read, child_write),
            start_new_session=True,
        )
    os.close(child_read)
    os.close(child_write)
    limit = given["timeout_s"]
    overdue = threading.Timer(limit, _kill, [process])
    overdue.start()
    begun = time.monotonic()
    try:
        hello, last = _messages(to_worker, from_worker, asked)
    finally:
        overdue.cancel()
        _kill(process)
        os.close(to_worker)
        os.close(from_worker)
    if last is None:
        told = (folder / "output").read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
        code = process.wait()
        if time.monotonic() - begun >= limit:
            raise WorkerEndedError(f"the worker took more than {limit:g} s and was stopped")
        error = WorkerLostError if code < 0 else WorkerEndedError
        raise error(f"the worker ended with code {code} before it was done: {told}")
    return json.dumps([hello, last])


def _messages(to_worker: int, from_worker: int, asked: Any) -> tuple[Any, Any]:
    """The hello, and the last message or None; a hello with a problem is all there is."""
    hello = _receive(from_worker)
    if hello is None or hello["body"].get("problem"):
        return hello, hello
    _send(to_worker, asked)
    while (message := _receive(from_worker)) is not None:
        if message["type"] in ("RunDone", "RunFailed"):
            return hello, message
    return hello, None


def _receive(descriptor: int) -> Any:
    header = _exactly(descriptor, struct.calcsize(_LENGTH))
    body = None if header is None else _exactly(descriptor, struct.unpack(_LENGTH, header)[0])
    return None if body is None else json.loads(body.decode("utf-8", "surrogatepass"))


def _exactly(descriptor: int, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        piece = os.read(descriptor, count - len(data))
        if not piece:
            return None
        data += piece
    return data


def _send(descriptor: int, value: Any) -> None:
    body = json.dumps(value).encode("utf-8", "surrogatepass")
    os.write(descriptor, struct.pack(_LENGTH, len(body)) + body)


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        return
