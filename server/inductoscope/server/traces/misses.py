"""Why a cache missed: the key of the miss beside the nearest key that the same graph had before.

torch tells the parts of a key as `[hash] name: value` (FX-graph cache 2.6 to 2.15, AOTAutograd's from 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inductoscope.server.traces.compilations import CacheEvent, Compilation
from inductoscope.server.traces.functions import by_function
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.run import CacheMiss

COMPARED = 6
"""Earlier keys of a function that a miss is compared with, the latest ones: a key has tens of kilobytes."""

MOST_PARTS = 4
"""Parts of a key that are told to differ."""

_PART = re.compile(r"\[(?P<hash>\w+)\] (?P<name>[^:]+): (?P<value>.*)", re.S)
_FIELD = re.compile(r"(\w+)=((?:[^,()\[\]]|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])*)")
_BACKWARD = "fx_kwargs[is_backward]"
_NAMES = {"gm": "the graph", "fx_kwargs": "options of the graph", "inductor_config": "settings of Inductor"}


@dataclass(frozen=True)
class _Key:
    """The parts of one key: name -> hash and value."""

    compile_id: str
    process: str
    key: str | None
    parts: Mapping[str, tuple[str, str]]


def misses(processes: Sequence[Process], places: Places) -> Iterator[CacheMiss]:
    """Every answer of a cache that was no hit, with what it differs in from what came before."""
    owners = {id(one): process for process in processes for one in process.compilations}
    for key, ones in by_function(processes).items():
        start = places.function(key.frame)
        earlier: dict[tuple[object, ...], list[_Key]] = {}
        for one in ones:
            process = owners[id(one)].label
            for event in one.caches:
                details = event.details()
                told = _key(one, process, details)
                backward = told.parts.get(_BACKWARD, ("", "False"))[1]
                before = earlier.setdefault((event.cache, one.function.line, one.function.resumed, backward), [])
                if event.result not in ("hit", "unknown"):
                    because = _because(event, details, told, before)
                    yield CacheMiss(
                        event.cache.removesuffix("_cache"),
                        event.result,
                        one.id,
                        process,
                        places.title(start),
                        start.file,
                        start.line,
                        because,
                    )
                before.append(told)
                del before[:-COMPARED]


def _because(event: CacheEvent, details: Mapping[str, Any], told: _Key, before: Sequence[_Key]) -> tuple[str, ...]:
    reason = details.get("cache_bypass_reason") or details.get("bypass_reason") or details.get("reason")
    if event.result != "miss" and reason:
        return (str(reason).partition("\n")[0],)
    if any(one.key is not None and one.key == told.key for one in before):
        return ("the same key was asked for before in this run: its entry was not saved, or was removed since",)
    comparable = [one for one in before if one.parts and told.parts]
    if not before:
        return ("there is no earlier key of this graph in the trace",)
    if not comparable:
        return ("the trace has no parts of the keys to compare",)
    nearest = min(reversed(comparable), key=lambda one: len(_differing(one, told)))
    names = _differing(nearest, told)
    where = f"against {nearest.compile_id}" + (f" of {nearest.process}" if nearest.process != told.process else "")
    parts = [_difference(name, nearest.parts.get(name), told.parts.get(name)) for name in names[:MOST_PARTS]]
    more = f"and {len(names) - MOST_PARTS} more parts" if len(names) > MOST_PARTS else ""
    return tuple(part for part in (where, *parts, more) if part)


def _key(one: Compilation, process: str, details: Mapping[str, Any]) -> _Key:
    parts: dict[str, tuple[str, str]] = {}
    components = details.get("components")
    for text in components if isinstance(components, list) else ():
        match = _PART.match(str(text))
        if match is not None:
            parts[match["name"]] = (match["hash"], match["value"])
    key = details.get("key")
    return _Key(one.id, process, key if isinstance(key, str) else None, parts)


def _differing(first: _Key, second: _Key) -> list[str]:
    names = dict.fromkeys((*first.parts, *second.parts))
    return [name for name in names if (first.parts.get(name) or ("",))[0] != (second.parts.get(name) or ("",))[0]]


def _difference(name: str, before: tuple[str, str] | None, after: tuple[str, str] | None) -> str:
    what = _NAMES.get(name, name)
    if before is None or after is None:
        return f"{what} is {'new' if before is None else 'gone'}"
    kinds = (before[1].partition("(")[0], after[1].partition("(")[0])
    if kinds[0] != kinds[1]:
        return f"{what}: {_kind(before[1])} -> {_kind(after[1])}"
    old, new = dict(_FIELD.findall(before[1])), dict(_FIELD.findall(after[1]))
    changed = [
        f"{field} {_short(old.get(field, 'none'))} -> {_short(new.get(field, 'none'))}"
        for field in dict.fromkeys((*old, *new))
        if old.get(field) != new.get(field)
    ]
    if changed and name.startswith("example_inputs"):
        return f"{what}: {', '.join(changed[:3])}"
    if len(before[1]) <= 40 and len(after[1]) <= 40 and before[1] != after[1]:
        return f"{what}: {before[1]} -> {after[1]}"
    return f"{what} differs"


def _short(text: str) -> str:
    text = text.strip().removeprefix("torch.Size(").removesuffix(")") if text.strip().startswith("torch.Size") else text
    return text.strip() if len(text) <= 40 else f"{text.strip()[:37]}..."


def _kind(value: str) -> str:
    return "a tensor" if value.startswith("TensorMetadata") else _short(value)
