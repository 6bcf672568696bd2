"""What a run is told of earlier ones and tells the next: keys of compile caches, and torch's hash of its sources."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import torch

from inductoscope.compiler import scratch
from inductoscope.compiler.compat import caches
from inductoscope.compiler.compat.caches import Identity
from inductoscope.compiler.lower import LowerFacts, UsersCaches, cache_keys
from inductoscope.protocol.messages import Memory, Run

_WITHOUT_THE_CARD = (
    "the entries lie where the GPU is, and a key holds the GPU, its CUDA version and torch's build: "
    "none that is made without the card is one of the program there"
)
"""What `CacheBase.get_system` and `torch_key` put into keys (2.5 to 2.15)."""


def users_caches(request: Run) -> UsersCaches:
    """The caches that the user's program would have, and what is remembered of them.  To be called after its import,
    which may have named a folder."""
    simulated = request.device.startswith("sim:")
    before = cache_keys.recalled(request.memory.target)
    if simulated:
        return UsersCaches(None, before, _WITHOUT_THE_CARD)
    folder = scratch.users_folder(scratch.INDUCTOR) or caches.default_folder()
    found = UsersCaches(folder, before, triton=scratch.users_folder(scratch.TRITON))
    if found.has_entries and not caches.keys_are_checked():
        return replace(found, unknown=caches.unchecked())
    if found.identity is Identity.REAL and (key := _remembered_key(request.memory.interpreter)):
        caches.know_torch_sources_key(key)
    return found


def for_the_next(request: Run, users: UsersCaches, facts: LowerFacts) -> Memory:
    """What the next run is to be told; where this one compiled nothing, what it was told itself."""
    if not facts.cache_keys:
        return request.memory
    own = request.memory.interpreter
    installed = _installed()
    if installed is not None and users.identity is Identity.REAL and _remembered_key(own) is None:
        own = json.dumps({"torch": installed, "key": caches.torch_sources_key().hex()})
    return Memory(cache_keys.remembered(facts.cache_keys), own)


def _remembered_key(text: str) -> bytes | None:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        stored = json.loads(text)
        if stored["torch"] == _installed():
            return bytes.fromhex(stored["key"])
    return None


def _installed() -> str | None:
    """A name for the torch that is installed, None for one whose sources somebody may be at work on."""
    version = Path(torch.version.__file__)
    if not {"site-packages", "dist-packages"} & set(version.parts):
        return None
    return f"{caches.version_text()} {version} {version.stat().st_mtime_ns}"
