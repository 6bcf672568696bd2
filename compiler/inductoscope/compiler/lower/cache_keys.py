"""Keys of compile caches compared: what became different, in words, and what of them is remembered for the next run.

A key is told by its parts (`graph`, `input 0`, `inductor_config.max_autotune`), each with a value as text.  Knows
nothing of torch.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_STATIC = "static_input_idxs"

MOST_TOLD = 6
"""Differences that are told one by one."""

_SETTINGS = {
    "inductor_config": "torch._inductor.config",
    "inductor_config_comms": "torch._inductor.config_comms",
    "autograd_config": "torch._functorch.config",
}
_NAMED = {
    "graph": "the graph's code differs",
    "torch_version": "another torch",
    "user_defined_triton_source": "a hand-written Triton kernel differs",
    "triton_kernel_source_codes": "a hand-written Triton kernel differs",
}


@dataclass(frozen=True)
class Known:
    """A key that was made earlier, in this run or the one before, and for what."""

    cache: str
    backward: bool
    graph: str
    key: str
    parts: Mapping[str, str]

    @property
    def frame(self) -> str:
        """The compiled function: torch's compile id without the count of its compilations."""
        return self.graph.partition("/")[0]


def differences(parts: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """What differs from an earlier key, a phrase each."""
    names = [name for name in dict.fromkeys((*before, *parts)) if parts.get(name) != before.get(name)]
    inputs = _inputs(parts, before)
    told = [_phrase(name, parts.get(name), before.get(name)) for name in names if not _is_input(name)]
    if inputs:  # which of them are parameters follows from what they are
        told = [inputs, *(phrase for phrase in told if not phrase.startswith(_STATIC))]
    return list(dict.fromkeys(told)) or ["the graph's constants or attributes differ"]


def nearest(now: Known, earlier: Sequence[Known]) -> Known | None:
    """Of the earlier keys of the same function for the same cache and pass, the one with the fewest differences; of
    equally near ones the latest."""
    same = [one for one in earlier if (one.cache, one.backward, one.frame) == (now.cache, now.backward, now.frame)]
    return min(reversed(same), key=lambda one: len(differences(now.parts, one.parts)), default=None)


def sentence(now: Known, before: Known, where: str) -> str:
    """How `now` differs from `before`, which was made `where`."""
    found = differences(now.parts, before.parts)
    more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    return f"compared with {where}: {'; '.join(found[:MOST_TOLD])}{more}"


def remembered(keys: Iterable[Known]) -> str:
    """The keys as text, for the next run.  Settings, which are many and mostly the same, are written once."""
    settings: dict[str, dict[str, str]] = {}
    told: list[dict[str, Any]] = []
    for one in keys:
        configured = {name: value for name, value in one.parts.items() if _is_setting(name)}
        digest = hashlib.sha256(json.dumps(configured, sort_keys=True).encode()).hexdigest()[:16]
        settings[digest] = configured
        parts = {name: value for name, value in one.parts.items() if not _is_setting(name)}
        told.append(
            {
                "cache": one.cache,
                "backward": one.backward,
                "graph": one.graph,
                "key": one.key,
                "parts": parts,
                "settings": digest,
            }
        )
    return json.dumps({"settings": settings, "keys": told})


def recalled(text: str) -> tuple[Known, ...]:
    """What `remembered` wrote; nothing where another version wrote something else."""
    try:
        stored = json.loads(text)
        settings = stored["settings"]
        return tuple(
            Known(
                str(one["cache"]),
                bool(one["backward"]),
                str(one["graph"]),
                str(one["key"]),
                {**one["parts"], **settings[one["settings"]]},
            )
            for one in stored["keys"]
        )
    except (ValueError, KeyError, TypeError):
        return ()


def _inputs(parts: Mapping[str, str], before: Mapping[str, str]) -> str | None:
    """How the inputs differ, whatever their positions: a size that became symbolic moves all that come after it."""
    now, then = (Counter(value for name, value in of.items() if _is_input(name)) for of in (parts, before))
    new, gone = (now - then).elements(), (then - now).elements()
    added, removed = ", ".join(new), ", ".join(gone)
    if not added and not removed:
        same = all(parts.get(name) == before.get(name) for name in (*parts, *before) if _is_input(name))
        return None if same else "the inputs stand in another order"
    if added and removed:
        return f"inputs {added} instead of {removed}"
    return f"further inputs: {added}" if added else f"inputs that are gone: {removed}"


def _is_input(name: str) -> bool:
    return name.startswith("input ")


def _is_setting(name: str) -> bool:
    return name.partition(".")[0] in _SETTINGS


def _phrase(name: str, now: str | None, before: str | None) -> str:
    kind, _, rest = name.partition(".")
    if kind in _NAMED:
        return _NAMED[kind]
    if kind == "system_info":
        return "another GPU, driver or Triton"
    if kind in _SETTINGS:
        return f"{_SETTINGS[kind]}.{rest} is {_said(now)} instead of {_said(before)}"
    subject = rest if kind == "fx_kwargs" else name.replace("_", " ")
    return f"{subject} is {_said(now)} instead of {_said(before)}"


def _said(value: str | None) -> str:
    return "absent" if value is None else value
