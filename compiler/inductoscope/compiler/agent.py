"""The far end of a remote run: keeps files that it is sent, starts one worker, and passes messages on.

Its text is sent to `python -m code` on the other machine, where nothing of Inductoscope is: standard library only, one
file, readable by Pythons down to 3.6 like `bootstrap.py`.  It speaks frames on its standard streams: those with the key
`agent` are for itself, all others for the worker.  Everything that it writes is in one folder, which is its own:
`blobs` holds the contents of files by their SHA-256, `runs` a folder for each run, removed when that ends.
"""

import base64
import contextlib
import hashlib
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
from pathlib import Path
from typing import Any

MARKER = b"\x01inductoscope-agent\x01\n"
HEADER = struct.Struct(">I")
UNUSED_AFTER_S = 30 * 24 * 3600.0
GPU_NODES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")
FOLDER = "INDUCTOSCOPE_AGENT_DIR"


def main() -> None:
    """Serve until the other side is gone or the worker has ended; never returns."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.write(outgoing, MARKER)
    agent = Agent(outgoing)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: agent.leave(1))
    try:
        while True:
            frame = read_frame(incoming)
            if frame is None:
                break
            agent.take(frame)
    finally:
        agent.leave(0)


class Agent:
    """What was sent so far, and the worker once it is started."""

    def __init__(self, outgoing: int) -> None:
        base = os.environ.get(FOLDER) or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "inductoscope-agent"
        self.base = Path(base).expanduser()
        self.blobs = self.base / "blobs"
        runs = self.base / "runs"
        for folder in (self.blobs, runs):
            folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(runs)
        self.run = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=str(runs)))
        self.root = self.run / "files"
        self.outgoing = outgoing
        self.lock = threading.Lock()
        self.files: list[tuple[str, str]] = []
        self.worker: subprocess.Popen[bytes] | None = None
        self.to_worker = -1

    def take(self, frame: bytes) -> None:
        """Do what a frame asks for, or pass it on."""
        value = json.loads(frame.decode("utf-8", "surrogatepass"))
        asked = value.get("agent") if isinstance(value, dict) else None
        if asked is None:
            write_frame(self.to_worker, frame)
        elif asked == "files":
            self.files = value["files"]
            self.say(agent="missing", hashes=[key for _, key in self.files if not self.has(key)])
        elif asked == "blob":
            self.keep(value["hash"], base64.b64decode(value["data"]))
        elif asked == "place":
            for path, key in self.files:
                self.place(path, key)
            self.say(agent="placed", root=str(self.root))
        elif asked == "start":
            self.start(value)

    def has(self, key: str) -> bool:
        """Whether these contents are here; they are then in use again."""
        try:
            os.utime(str(self.blobs / key))
        except OSError:
            return False
        return True

    def keep(self, key: str, data: bytes) -> None:
        """Keep contents under their own hash."""
        if hashlib.sha256(data).hexdigest() != key:
            raise ValueError("the contents of a file were damaged on the way")
        handle, name = tempfile.mkstemp(dir=str(self.run))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(self.blobs / key)

    def place(self, path: str, key: str) -> None:
        """Put a file where the run looks for it, which is below its own folder."""
        where = Path(os.path.normpath(f"{self.root}/{path}"))
        if self.root not in where.parents:
            raise ValueError(f"a file lies outside of its folder: {path}")
        where.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(self.blobs / key), str(where))

    def start(self, asked: "dict[str, Any]") -> None:
        """Start the worker with pipes to it, and pass on what it says."""
        child_read, self.to_worker = os.pipe()
        from_worker, child_write = os.pipe()
        temporary, cwd = self.run / "tmp", Path("{}/{}".format(self.root, asked["cwd"]))
        for folder in (temporary, cwd):
            folder.mkdir(parents=True, exist_ok=True)
        own = {name: str(temporary) for name in ("TMPDIR", "XDG_CACHE_HOME", "TRITON_HOME")}
        parts = [f"{self.root}/{part}" for part in asked["parts"]]
        bootstrap = "{}/{}".format(self.root, asked["bootstrap"])
        command = [sys.executable, "-u", "-X", "faulthandler", bootstrap, str(child_read), str(child_write)]
        self.worker = subprocess.Popen(
            command + parts,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            cwd=str(cwd),
            env={**os.environ, **own},
            pass_fds=(child_read, child_write),
            start_new_session=True,
        )
        os.close(child_read)
        os.close(child_write)
        threading.Thread(target=self.pass_on, args=(from_worker,), daemon=True).start()

    def pass_on(self, from_worker: int) -> None:
        """Everything that the worker says goes home; its end is told and is the end of all."""
        first = True
        while True:
            frame = read_frame(from_worker)
            if frame is None:
                break
            if first:
                frame, first = with_gpu(frame), False
            self.write(frame)
        code = self.worker.wait() if self.worker is not None else 1
        self.say(agent="ended", code=code)
        self.leave(0)

    def say(self, **value: object) -> None:
        """Send something of one's own."""
        self.write(json.dumps(value).encode())

    def write(self, frame: bytes) -> None:
        """Send a frame home; without a home there is nothing left to do."""
        try:
            with self.lock:
                write_frame(self.outgoing, frame)
        except OSError:
            self.leave(1)

    def leave(self, status: int) -> None:
        """End the worker and all that it started, remove the run's folder and what nobody used, and exit."""
        if self.worker is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.worker.pid, signal.SIGKILL)
        shutil.rmtree(str(self.run), ignore_errors=True)
        forget(self.blobs)
        os._exit(status)


def with_gpu(frame: bytes) -> bytes:
    """The worker's hello, with whether this machine has a GPU."""
    value = json.loads(frame.decode("utf-8"))
    if value.get("type") == "Hello":
        value["body"]["gpu"] = any(Path(node).exists() for node in GPU_NODES)
    return json.dumps(value).encode()


def read_frame(descriptor: int) -> "bytes | None":
    """The body of the next frame, or None at the end."""
    header = read_exactly(descriptor, HEADER.size)
    return None if header is None else read_exactly(descriptor, HEADER.unpack(header)[0])


def read_exactly(descriptor: int, count: int) -> "bytes | None":
    """So many bytes, or None when there are not so many any more."""
    data = bytearray()
    while len(data) < count:
        piece = os.read(descriptor, min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def write_frame(descriptor: int, body: bytes) -> None:
    """Write a frame whole."""
    data = memoryview(HEADER.pack(len(body)) + body)
    while data:
        data = data[os.write(descriptor, data) :]


def remove_abandoned(runs: Path) -> None:
    """Remove the folders of agents that are gone."""
    for folder in runs.iterdir():
        pid = folder.name.partition("-")[0]
        if pid.isdigit() and not runs_now(int(pid)):
            shutil.rmtree(str(folder), ignore_errors=True)


def runs_now(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def forget(blobs: Path) -> None:
    """Remove contents that no run used for a month."""
    oldest = time.time() - UNUSED_AFTER_S
    for blob in blobs.iterdir():
        try:
            if blob.stat().st_mtime < oldest:
                blob.unlink()
        except OSError:
            pass
