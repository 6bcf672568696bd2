"""What generated documents are written in, by the endings of their names; the values are the ids that editors use."""

from __future__ import annotations

import enum


class Language(enum.Enum):
    """A language of a document."""

    PYTHON = "python"
    CPP = "cpp"
    MLIR = "mlir"
    LLVM = "llvm"
    PTX = "ptx"
    SASS = "sass"
    AMDGCN = "amdgcn"
    MARKDOWN = "markdown"
    TEXT = "plaintext"


_BY_ENDING = {
    "py": Language.PYTHON,
    "cpp": Language.CPP,
    "ttir": Language.MLIR,
    "ttgir": Language.MLIR,
    "llir": Language.LLVM,
    "ptx": Language.PTX,
    "sass": Language.SASS,
    "amdgcn": Language.AMDGCN,
    "md": Language.MARKDOWN,
}


def of(name: str) -> Language:
    """The language of the document with that name."""
    return _BY_ENDING.get(name.rpartition(".")[2], Language.TEXT)
