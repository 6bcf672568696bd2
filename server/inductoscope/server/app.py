"""The language server's composition root: builds the parts, binds them, serves standard input and output."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from inductoscope.protocol._version import __version__
from inductoscope.server import recall
from inductoscope.server.clock import LoopClock
from inductoscope.server.editor import LspEditor
from inductoscope.server.endpoints import Endpoints
from inductoscope.server.folders import NO_FOLDER, PROJECT_FILE, Folders
from inductoscope.server.ports import MakeRunner
from inductoscope.server.runner import make_runner
from inductoscope.server.session import Session
from inductoscope.server.transport import Server
from inductoscope.server.watching import Following

logger = logging.getLogger("inductoscope")


def build(make: MakeRunner = make_runner) -> Server:
    """A server with everything registered, not yet serving."""
    server = Server("inductoscope", __version__)
    clock = LoopClock()
    editor = LspEditor(server, clock)
    folders = Folders(make, editor.tell)

    def is_covered(path: str) -> bool:
        watched = path.endswith(".py") or Path(path).name == PROJECT_FILE
        return watched and editor.profile.watches_files and folders.of(path) != NO_FOLDER

    following = Following(clock, is_covered, editor.tell)
    session = Session(editor, folders, clock, following, recall.users())
    following.tells(session.files_changed)
    Endpoints(server, editor, folders, session, following).register()
    return server


def serve(argv: Sequence[str] | None = None) -> int:
    """Serve until the client says `exit` or goes away; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        _set_up_log(options.log_file, options.log_level)
    except OSError as error:
        sys.stderr.write(f"inductoscope: The log cannot be written to {options.log_file}: {error.strerror}.\n")
        return 2
    server = build()
    stdin, stdout = _take_streams()
    server.start_io(stdin, stdout)
    return server.protocol.exit_code if server.protocol.exit_code is not None else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inductoscope serve", description="Serve an editor over LSP on stdio.")
    parser.add_argument("--stdio", action="store_true", help="accepted because clients pass it; there is no other way")
    parser.add_argument("--log-file", type=Path, help="write the log here; by default to standard error")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser


def _set_up_log(file: Path | None, level: str) -> None:
    handler = logging.FileHandler(file, encoding="utf-8") if file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    for other in ("pygls", "asyncio"):  # pygls logs whole messages
        logging.getLogger(other).setLevel(logging.WARNING)
        logging.getLogger(other).addHandler(handler)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The protocol's streams, on descriptors of their own: what is printed by mistake goes to standard error."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return stdin, stdout


if __name__ == "__main__":
    raise SystemExit(serve())
