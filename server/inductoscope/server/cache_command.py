"""`inductoscope cache`: how much is kept between runs and where, and to remove it."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

OK = 0


@dataclass(frozen=True)
class Kept:
    """A kind of things that are kept: how many, their bytes on disk, and how long ago the oldest was last of use."""

    what: str
    folder: str
    files: int
    bytes: int
    limit: int
    oldest_s: float | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("action", nargs="?", choices=("info", "clear"), default="info", help="default: info")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do the command; returns the exit status."""
    kept = _kept()
    if arguments.action == "clear":
        _clear()
    if arguments.json:
        sys.stdout.write(json.dumps([asdict(one) for one in kept], indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(kept, arguments.action)))
    return OK


def _kept() -> tuple[Kept, ...]:
    from inductoscope.protocol.messages import Assembling
    from inductoscope.server import recall
    from inductoscope.server.assembly import texts

    results, kernels = recall.users().store, texts.store()
    found: list[Kept] = []
    if results is not None:
        usage = results.usage()
        oldest = None if usage.oldest is None else max(0.0, time.time() - usage.oldest)
        found.append(Kept("results", str(results.folder), usage.results, usage.size, results.budget, oldest))
    sizes = list(_sizes(kernels.folder))
    found.append(Kept("kernels", str(kernels.folder), len(sizes), sum(sizes), Assembling().store_bytes))
    return tuple(found)


def _clear() -> None:
    from inductoscope.server import recall
    from inductoscope.server.assembly import texts

    results = recall.users().store
    if results is not None:
        results.clear()
    texts.store().trim(0)


def _lines(kept: tuple[Kept, ...], action: str) -> Iterable[str]:
    from inductoscope.server import words

    for one in kept:
        held = f"{words.count(one.files, one.what.removesuffix('s'))}, {words.size(one.bytes)}"
        if action == "clear":
            yield f"removed {held} from {one.folder}"
            continue
        age = "" if one.oldest_s is None else f"; the oldest was last of use {words.age(one.oldest_s)}"
        yield f"{held} of at most {words.size(one.limit)} in {one.folder}{age}"
    if len(kept) == 1:
        yield "results are not kept: INDUCTOSCOPE_CACHE is off"


def _sizes(folder: Path) -> Iterable[int]:
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            yield path.stat().st_size
