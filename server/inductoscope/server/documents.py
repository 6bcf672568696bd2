"""The texts that the editor has open.

The server keeps its own copy (synchronised in full) because it must know exactly which text and version a result
belongs to.  Knows URIs and files; knows neither LSP types nor results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from inductoscope.server import sources
from inductoscope.server.positions import Text

_LARGEST_DATA = 1 << 20
"""Bytes up to which a data file counts by what it says: a touched one is then the same as before."""

_DRIVE = re.compile(r"/[A-Za-z]:")


def path_of(uri: str) -> str | None:
    """The absolute path that a `file:` URI names, or None for other schemes."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if _DRIVE.match(path):
        path = path[1:]
    return str(Path(path if parts.netloc in ("", "localhost") else f"//{parts.netloc}{path}"))


def uri_of(path: str) -> str:
    """The `file:` URI of an absolute path."""
    return Path(path).as_uri()


@dataclass(frozen=True)
class Document:
    """One open text.  `saved` is what the file is believed to hold: the text as opened, then as last saved."""

    uri: str
    path: str
    version: int
    text: Text
    saved: Text


@dataclass(frozen=True)
class Documents:
    """All open documents by path.  Every change makes a new value, so that a snapshot can hold on to an old one."""

    by_path: dict[str, Document]

    def get(self, path: str) -> Document | None:
        """The open document of that file."""
        return self.by_path.get(path)

    def opened(self, uri: str, path: str, version: int, source: str) -> Documents:
        """With one more document."""
        text = Text(source)
        return self._with(Document(uri, path, version, text, text))

    def changed(self, path: str, version: int, source: str) -> Documents:
        """With a new text.  Raises `KeyError` when the document is not open."""
        return self._with(replace(self.by_path[path], version=version, text=Text(source)))

    def saved(self, path: str) -> Documents:
        """After the text was written to the file.  Raises `KeyError` when the document is not open."""
        document = self.by_path[path]
        return self._with(replace(document, saved=document.text))

    def closed(self, path: str) -> Documents:
        """Without that document."""
        return Documents({key: value for key, value in self.by_path.items() if key != path})

    def overlays(self) -> dict[str, str]:
        """Path and text of every document that differs from its file."""
        return {path: doc.text.source for path, doc in self.by_path.items() if read_source(path) != doc.text.source}

    def _with(self, document: Document) -> Documents:
        return Documents({**self.by_path, document.path: document})


def read_input(path: str) -> str | None:
    """What a file of a program says: a Python file's text, of a data file its text or, where it is none or a large one,
    its size and when it was written.  None when there is no such file."""
    if path.endswith((".py", ".pyw")):
        return read_source(path)
    try:
        status = Path(path).stat()
        if status.st_size <= _LARGEST_DATA:
            return Path(path).read_bytes().decode()
    except OSError:
        return None
    except UnicodeDecodeError:
        pass
    return f"{status.st_size} bytes of {status.st_mtime_ns}"


def read_source(path: str) -> str | None:
    """A Python file's text with its line ends as they are, or None when it cannot be read as such."""
    try:
        return sources.read_text(Path(path))
    except sources.SourceError:
        return None
