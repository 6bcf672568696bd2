"""What the compiler made of kernels, kept on disk: one file for each kernel, named by a hash of all that went into it.

Workers write, workers and the server read, several of each at once.  A file is a ZIP archive with `facts.json` and one
member for each artifact, `INDEX/STAGE` after the configuration.  It appears whole or not at all (renamed into place),
and whoever finds one that is damaged removes it and takes it as not there.  What was used longest ago goes first when
there is too much.  Standard library only; knows nothing of what the facts mean.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductoscope.protocol import kept_files

NAME = "KERNEL"
"""Stands for the kernel's own name in texts and facts, because a name holds a number that other kernels decide."""

FORMAT = 1
"""Part of every key: raised when older files must not be read as newer ones."""

_FACTS = "facts.json"
_SUFFIX = ".zip"
_KEY = re.compile(r"[0-9a-f]{16,64}")

_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class KernelStore:
    """The store in `folder`, which need not exist yet."""

    folder: Path

    def facts(self, key: str) -> Any:
        """The facts kept under `key`, parsed JSON; None where there are none.  Counts as a use."""
        found = self._member(key, _FACTS)
        if found is None:
            return None
        try:
            parsed = json.loads(found)
        except ValueError:
            self._drop(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path(key))
        return parsed

    def artifact(self, key: str, config: int, stage: str) -> bytes | None:
        """An artifact as it was kept, with `NAME` for the kernel's name; None where it is not there (any more)."""
        return self._member(key, f"{config}/{stage}")

    def text(self, key: str, config: int, stage: str, name: str) -> str | None:
        """A text artifact of a kernel that is called `name`; None where it is not there (any more)."""
        found = self.artifact(key, config, stage)
        return None if found is None else named(found.decode("utf-8", "replace"), name)

    def put(self, key: str, facts: Any, artifacts: Mapping[tuple[int, str], bytes]) -> None:
        """Keep the facts (JSON values) and artifacts by configuration and stage.  Raises `OSError`."""
        with (
            kept_files.writing(self._path(key)) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            archive.writestr(_FACTS, json.dumps(facts))
            for (config, stage), content in artifacts.items():
                archive.writestr(f"{config}/{stage}", content)

    def trim(self, budget: int) -> None:
        """Remove what was used longest ago until at most `budget` bytes are left.  Others may do so meanwhile."""
        kept_files.trim(kept_files.kept(self.folder, "*/*", _SUFFIX), budget)

    def _member(self, key: str, name: str) -> bytes | None:
        try:
            with zipfile.ZipFile(self._path(key)) as archive:
                if name != _FACTS and name not in archive.NameToInfo:
                    return None  # the compiler did not come that far
                return archive.read(name)
        except OSError:
            return None
        except _DAMAGED:
            self._drop(key)
            return None

    def _drop(self, key: str) -> None:
        kept_files.remove(self._path(key))

    def _path(self, key: str) -> Path:
        """Raises `ValueError` for what is no key, so that none can name a file elsewhere."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key of a kernel")
        return self.folder / key[:2] / f"{key}{_SUFFIX}"


_OWN_NAME = (re.compile(r"'kernel_name': '(\w+)'"), re.compile(r"^@triton\.jit\b[^\n]*\ndef (\w+)\(", re.MULTILINE))


def own_name(source: str) -> str | None:
    """The name of the kernel's function in its own source."""
    for pattern in _OWN_NAME:
        if found := pattern.search(source):
            return found[1]
    return None


def nameless(text: str, name: str) -> str:
    """`text` with `NAME` wherever the kernel's own `name` stands as a word of its own, or begins a PTX parameter's."""
    return _word(name).sub(NAME, text)


def named(text: str, name: str) -> str:
    """The text of the kernel that is called `name`: the opposite of `nameless`."""
    return _word(NAME).sub(name, text)


def _word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?:(?![A-Za-z0-9_])|(?=_param_\d))")
