"""Dynamo's profile of sizes that differed between calls (`torch._dynamo.pgo`, 2.6 to 2.15): kept for a program that has
a job id, read when it starts, so that these sizes are dynamic from its first compilation on.

A profile in the user's folder is read as torch would read it, for the code that this process has compiled; nothing is
changed.  Checked by running on 2.13.
"""

from __future__ import annotations

import enum
import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_PGO = "torch._dynamo.pgo"


class Keeping(enum.Enum):
    """Whether a program's profile is kept on its own disk, and else why not."""

    ON = "on"
    NO_JOB_ID = "no job id"
    TURNED_OFF = "turned off"
    ABSENT = "this torch has none"


def keeping() -> Keeping:
    """For this program, as it is configured now."""
    pgo = _pgo()
    if pgo is None:
        return Keeping.ABSENT
    config = torch._dynamo.config
    if torch.compiler.config.force_disable_caches or not config.automatic_dynamic_local_pgo:
        return Keeping.TURNED_OFF
    return Keeping.NO_JOB_ID if pgo.get_cache_key() is None else Keeping.ON


def profile_in(folder: Path) -> Path:
    """Where this program's profile lies in a cache folder.  Only where one is kept."""
    pgo: Any = _pgo()
    return folder / "dynamo" / Path(pgo.code_state_path(pgo.get_cache_key())).name


def dynamic_from(profile: Path) -> tuple[str, ...] | None:
    """What a profile says of the code that this process has compiled: `x.shape[0]` for a size that differed.

    None where it says nothing of that code.  Raises `OSError` where it cannot be read, and whatever unpickling raises.
    """
    pgo: Any = _pgo()
    stored = pickle.loads(profile.read_bytes())
    known = [code for code in pgo.get_code_state() if code in stored]
    if not known:
        return None
    return tuple(
        dict.fromkeys(
            said
            for code in known
            for source, entry in stored[code].automatic_dynamic.items()
            for said in _dynamic(_spelled(source), entry, pgo.auto_dynamic)
        )
    )


def _dynamic(source: str, entry: Any, mark: Any) -> Iterator[str]:
    if isinstance(entry.size, tuple):
        yield from (f"{source}.shape[{dim}]" for dim, size in enumerate(entry.size) if size is mark)
    elif entry.scalar is mark:
        yield source


def _spelled(source: str) -> str:
    """`L['x']`, as torch names a local variable, as the program does."""
    return source.removeprefix("L['").replace("']", "", 1) if source.startswith("L['") else source


def _pgo() -> Any:
    try:
        found = importlib.import_module(_PGO)
    except ImportError:
        return None
    return found if all(hasattr(found, name) for name in ("get_cache_key", "code_state_path", "auto_dynamic")) else None
