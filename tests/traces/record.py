"""Records the traces in `recorded.tar.xz`: the programs of this folder under several versions of torch.

usage: python record.py NAME=PYTHON ...        such as 2.13=/usr/bin/python3

`train.py` runs twice, with empty caches (`cold.log`) and with what the first run left (`warm.log`); `ranks.py` runs
as two ranks (`rank0.log`, `rank1.log`).  Paths of this machine are replaced by those of a made-up one, and the
checksums of payloads with them.  Other versions that the archive has are kept.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "recorded.tar.xz"
FOLDER = Path("/home/user/project")
"""Where the programs run: torch cuts file names short, so they cannot be replaced afterwards."""

_PAYLOAD = re.compile(rb'"has_payload": "[0-9a-f]{32}"')


def record(name: str, python: str) -> Iterator[tuple[str, bytes]]:
    """Every trace of one version: its name in the archive, and its text."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for program in (HERE / "programs").glob("*.py"):
        shutil.copy(program, FOLDER)
    ask = "import sys; print(sys.prefix); print(sys.base_prefix)"
    prefix, base = subprocess.check_output([python, "-c", ask], text=True).split()
    with tempfile.TemporaryDirectory() as scratch:
        neutral = {prefix: "/home/user/venv", base: "/usr/local", scratch: "/home/user/traces"}
        cache = FOLDER.parent / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        for run in ("cold", "warm"):
            (text,) = _run(python, "train.py", Path(scratch, run), cache)
            yield f"{name}/{run}.log", _neutral(text, neutral)
        for rank, text in enumerate(_run(python, "ranks.py", Path(scratch, "ranks"), cache, ranks=2)):
            yield f"{name}/rank{rank}.log", _neutral(text, neutral)
        shutil.rmtree(cache, ignore_errors=True)


def _run(python: str, program: str, traces: Path, cache: Path, ranks: int = 1) -> list[bytes]:
    env = {
        **os.environ,
        "TORCH_TRACE": str(traces),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "INDUCTOR_PROVENANCE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29517",
        "WORLD_SIZE": str(ranks),
    }
    started = [
        subprocess.Popen([python, program], cwd=FOLDER, env={**env, "RANK": str(rank)}, stdout=subprocess.DEVNULL)
        for rank in range(ranks)
    ]
    for process in started:
        assert process.wait() == 0, f"{program} failed under {python}"
    return [path.read_bytes() for path in sorted(traces.iterdir())]


def _neutral(text: bytes, names: dict[str, str]) -> bytes:
    """The trace with other paths and the checksums that belong to them."""
    for own, other in names.items():
        text = text.replace(own.encode(), other.encode())
    records: list[bytes] = []
    for line in text.splitlines(keepends=True):
        if line.startswith(b"\t"):
            records[-1] += line
        else:
            records.append(line)
    return b"".join(map(_checked, records))


def _checked(record: bytes) -> bytes:
    head, _, payload = record.partition(b"\n")
    lines = payload.removesuffix(b"\n").split(b"\n") if payload else []
    md5 = hashlib.md5(b"\n".join(line[1:] for line in lines)).hexdigest().encode()
    return _PAYLOAD.sub(b'"has_payload": "' + md5 + b'"', head) + b"\n" + payload


def main(versions: list[str]) -> None:
    """Record the versions and write the archive."""
    members: dict[str, bytes] = {}
    if ARCHIVE.exists():
        with tarfile.open(ARCHIVE) as archive:
            members = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    for version in versions:
        name, _, python = version.partition("=")
        members.update(record(name, python))
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, text in sorted(members.items(), key=lambda item: (item[0].partition("/")[2], item[0])):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))


if __name__ == "__main__":
    main(sys.argv[1:])
