"""A local process that stands for a worker on another machine: passes messages, and sends the files that a run needs.

It starts the runner's command, which gives a Python there, sends that the text of `compiler/agent.py`, and speaks
frames with it.  Paths are translated on the way: a file that is `/home/me/model.py` here lies below the run's folder
there.  It ends as the worker did, with the same code or signal, so that whoever follows it sees no difference.
"""

from __future__ import annotations

import base64
import collections
import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NoReturn, cast

from inductoscope.protocol import messages
from inductoscope.protocol.frames import Channel, FrameError
from inductoscope.protocol.messages import PROTOCOL, Hello, Run
from inductoscope.server.remote import closure
from inductoscope.server.remote.closure import Parcel
from inductoscope.server.workers.command import bootstrap_path, namespace_parts

_MARKER = b"\x01inductoscope-agent\x01\n"
_MOST_BEFORE = 1 << 20
"""Bytes of greetings and prompts that may come before the agent's first word."""

_WORDS = 3
_GRACE_S = 0.3


class _LostError(Exception):
    """The other machine cannot be reached, or not any more; the message is a sentence."""


def main(given: Mapping[str, Any], descriptors: Sequence[str]) -> NoReturn:
    """Relay between the server, on the two descriptors, and the other machine."""
    read_fd, write_fd = map(int, descriptors)
    home = Channel(os.fdopen(read_fd, "rb", buffering=0), os.fdopen(write_fd, "wb", buffering=0))
    try:
        far = _Far(given["runner"], given["python"])
        relay = _Relay(home, far, given["roots"])
        relay.prepare(given["cwd"])
    except (_LostError, FrameError, OSError) as error:
        hello = Hello(PROTOCOL, "", given["python"], os.getpid(), problem=str(error).rstrip("."))
        home.send(messages.to_wire(hello))
        os._exit(1)
    threading.Thread(target=relay.outward, daemon=True).start()
    relay.homeward()


class _Far:
    """The runner's process and frames to the agent there."""

    def __init__(self, runner: Sequence[str], python: str) -> None:
        self._named = " ".join(runner)
        try:
            self._process = subprocess.Popen(
                [*runner, python, "-u", "-m", "code"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise _LostError(f"The runner {self._named} cannot be started: {error.strerror}") from None
        to, come, errors = (
            cast(BinaryIO, stream) for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._said: collections.deque[str] = collections.deque(maxlen=_WORDS)
        self._listener = threading.Thread(target=self._listen, args=(errors,), daemon=True)
        self._listener.start()
        self._begin(to, come)
        self.channel = Channel(come, to)

    def lost(self, when: str) -> _LostError:
        """What is known of why nothing comes from there any more."""
        try:
            code = self._process.wait(_GRACE_S)
            self._listener.join(_GRACE_S)
        except subprocess.TimeoutExpired:
            return _LostError(f"The connection through {self._named} was closed {when}{self._last_words()}")
        return _LostError(f"The runner {self._named} ended with exit code {code} {when}{self._last_words()}")

    def _begin(self, to: BinaryIO, come: BinaryIO) -> None:
        text = (bootstrap_path().parent / "agent.py").read_bytes()
        packed = base64.b64encode(zlib.compress(text, 9)).decode()
        # One line, since the console of `python -m code` reads lines.
        unpacked = f"zlib.decompress(base64.b64decode('{packed}')).decode()"
        line = f"import base64,zlib;s={{'__name__':'agent'}};exec({unpacked},s);s['main']()\n"
        try:
            to.write(line.encode())
            to.flush()
        except OSError:
            raise self.lost("before Python ran there") from None
        before = b""
        while not before.endswith(_MARKER):
            piece = come.read(1)
            if not piece or len(before) > _MOST_BEFORE:
                raise self.lost("before Python ran there")
            before += piece

    def _listen(self, errors: BinaryIO) -> None:
        for line in errors:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._said.append(text)
                sys.stderr.write(f"{text}\n")

    def _last_words(self) -> str:
        return f"; its last output was: {' | '.join(self._said)}" if self._said else ""


class _Relay:
    """Both directions, once files and worker are there."""

    def __init__(self, home: Channel, far: _Far, roots: Sequence[str]) -> None:
        self._home = home
        self._far = far
        self._roots = roots
        self._root = ""
        self._parcel = Parcel({}, {})
        self._placed = threading.Event()
        self._started = False

    def prepare(self, cwd: str) -> None:
        """Send what the worker consists of, and start it.  Raises `_LostError`."""
        self._offer(closure.own_files())
        while not self._placed.is_set():
            self._answer(self._receive())
        start = {"agent": "start", "parts": namespace_parts(), "bootstrap": str(bootstrap_path()), "cwd": cwd}
        self._far.channel.send(start)

    def homeward(self) -> NoReturn:
        """Pass on what the worker says, until its end, which becomes that of this process."""
        while True:
            try:
                value = self._receive()
            except (_LostError, FrameError, OSError) as error:
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()
                os._exit(1)
            if isinstance(value, dict) and "agent" in value:
                self._answer(value)
            else:
                self._home.send(self._at_home(value))

    def outward(self) -> None:
        """Pass on what the server says; a run's files go first.  Without a server there is nothing to relay."""
        try:
            while (value := self._home.receive()) is not None:
                message = messages.from_wire(value)
                if isinstance(message, Run):
                    self._placed.clear()
                    self._offer(closure.of_target(message.target.file, self._roots))
                    self._placed.wait()
                    value = self._there(value)
                self._far.channel.send(value)
        except (FrameError, OSError):
            pass
        os._exit(0)

    def _offer(self, files: Iterable[str]) -> None:
        self._parcel = closure.parcel(files)
        self._far.channel.send({"agent": "files", "files": list(self._parcel.paths.items())})

    def _answer(self, value: Mapping[str, Any]) -> None:
        match value["agent"]:
            case "missing":
                for key in dict.fromkeys(value["hashes"]):
                    data = base64.b64encode(self._parcel.contents[key]).decode()
                    self._far.channel.send({"agent": "blob", "hash": key, "data": data})
                self._far.channel.send({"agent": "place"})
            case "placed":
                self._root = value["root"]
                self._placed.set()
            case "ended":
                _end_as(value["code"])

    def _receive(self) -> Any:
        value = self._far.channel.receive()
        if value is None:
            raise self._far.lost("in the middle of the run")
        return value

    def _there(self, value: Any) -> Any:
        """A request with the paths of the other machine, and without what only this one has."""
        body = value["body"]
        body["target"]["file"] = self._root + body["target"]["file"]
        body["overlays"] = {self._root + path: text for path, text in body["overlays"].items()}
        body["search_paths"] = [self._root + path for path in body["search_paths"]]
        body["assembling"] = {**body["assembling"], "store": None}
        return value

    def _at_home(self, value: Any) -> Any:
        """What was said there with the paths of this machine."""
        if isinstance(value, str):
            return value.replace(self._root, "")
        if isinstance(value, list):
            return [self._at_home(item) for item in value]
        if isinstance(value, dict):
            return {self._at_home(key): self._at_home(item) for key, item in value.items()}
        return value


def _end_as(code: int) -> NoReturn:
    """End with an exit code, or by the signal that a negative one stands for."""
    sys.stderr.flush()
    if code < 0:
        os.kill(os.getpid(), -code if -code != signal.SIGPIPE else signal.SIGKILL)  # Python ignores that one
    os._exit(code if code >= 0 else 1)
