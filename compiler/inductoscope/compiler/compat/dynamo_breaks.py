"""Graph breaks as exceptions, and the registry of their types that ships inside torch.

`Unsupported`, `UserError` and `FailOnRecompileLimitHit` of torch/_dynamo/exc.py; all of them in 2.11 to 2.15.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import torch

logger = logging.getLogger(__name__)

_REGISTRY = "graph_break_registry.json"  # beside torch/_dynamo/exc.py since 2.8
_BREAK_SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{number}.html"  # torch/_dynamo/exc.py

ASKED_FOR = "Call to `torch._dynamo.graph_break()`"
"""The type of a break that somebody wrote (GB0025 in the registry, 2.8 to 2.15)."""


def is_graph_break(error: BaseException) -> bool:
    """Whether an exception is a graph break that nobody was allowed to handle, as under `fullgraph=True`."""
    return isinstance(error, torch._dynamo.exc.Unsupported | torch._dynamo.exc.UserError)


def is_recompile_limit(error: BaseException) -> bool:
    """Whether an exception says that a recompile limit was hit under `fullgraph=True`."""
    return isinstance(error, torch._dynamo.exc.FailOnRecompileLimitHit)


def message_of(error: BaseException) -> str:
    """torch's message as it was raised; handling an exception adds stacks to its text, but not to `msg`."""
    return getattr(error, "msg", None) or str(error)


def break_id(kind: str) -> str | None:
    """torch's id (`GB0059`) for a type of graph break, None where the registry does not know it."""
    return _break_ids().get(kind)


def break_link(identifier: str) -> str:
    """The registry's page about a graph break."""
    return _BREAK_SITE.format(number=identifier.removeprefix("GB"))


@cache
def _break_ids() -> Mapping[str, str]:
    path = Path(torch.__file__).parent / "_dynamo" / _REGISTRY
    try:
        registry = json.loads(path.read_text(encoding="utf-8"))
        return {entry["Gb_type"]: key for key, entries in registry.items() for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        logger.warning("the graph-break registry of this torch cannot be read", exc_info=True)
        return {}
