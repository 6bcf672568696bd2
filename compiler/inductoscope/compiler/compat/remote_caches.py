"""torch's remote caches: whether they are on, and which setting says so.  None is ever asked.

Each is a setting that is true, false, or unset, which means on only inside of Meta (2.11 to 2.15).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat.inductor import functorch_config, inductor_config


@dataclass(frozen=True)
class Remote:
    """A remote cache: what it is called in a report, the setting in question with its value, and torch's decision."""

    cache: str
    setting: str
    value: object
    is_on: bool


_INDUCTOR, _FUNCTORCH, _DYNAMO = "torch._inductor.config", "torch._functorch.config", "torch._dynamo.config"
_SETTINGS = (
    ("remote_fx_graph", _INDUCTOR, "fx_graph_remote_cache"),
    ("remote_aot_autograd", _FUNCTORCH, "enable_remote_autograd_cache"),
    ("remote_autotune", _INDUCTOR, "autotune_remote_cache"),
    ("remote_autotune_bundle", _INDUCTOR, "bundled_autotune_remote_cache"),
    ("remote_pgo", _DYNAMO, "automatic_dynamic_remote_pgo"),
)


def remote_caches(options: Mapping[str, Any]) -> tuple[Remote, ...]:
    """Those that this torch has; `options` are values of settings that hold instead of the present ones.

    Unset counts as off: whoever is inside of Meta has more to ask than this module knows of.
    """
    disabled = bool(getattr(torch.compiler.config, "force_disable_caches", False))
    present = {
        _INDUCTOR: inductor_config().get_config_copy(),
        _FUNCTORCH: functorch_config().get_config_copy(),
        _DYNAMO: importlib.import_module(_DYNAMO).get_config_copy(),
    }
    return tuple(
        Remote(cache, f"{module}.{name}", value, bool(value) and not disabled)
        for cache, module, name in _SETTINGS
        if name in present[module]
        for value in (options.get(name, present[module][name]),)
    )
