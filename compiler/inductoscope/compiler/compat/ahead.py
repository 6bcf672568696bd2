"""Imports of the compiler's own modules ahead of their first use.

`torch._dynamo` and `torch._inductor.compile_fx` have no public names; a first compilation imports them, which takes
seconds.  Both stand under these names in torch 2.11 to 2.15.
"""

from __future__ import annotations

import importlib

_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")


def import_compiler() -> None:
    """Import Dynamo and Inductor, as far as this torch has them."""
    for name in _MODULES:
        importlib.import_module(name)
