"""Paths as people read them: relative to where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def shown(file: str, folder: Path) -> str:
    """`file` relative to `folder` when it lies below it, else as it is."""
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_absolute() and path.is_relative_to(folder) else file


def relative_files(value: Any, folder: Path) -> Any:
    """A JSON value with every `file` in it as `shown`."""
    if isinstance(value, list):
        return [relative_files(item, folder) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: shown(item, folder) if key == "file" and isinstance(item, str) else relative_files(item, folder)
        for key, item in value.items()
    }
