"""How torch is patched: every replacement is named, has its reason, and says where it was checked.

A name that this version of torch does not have is not an error here; it is kept in `missing`, and the self-test tells.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ALL_VERSIONS = "2.11-2.15"


@dataclass(frozen=True)
class Patch:
    """One replacement: `owner.name`, why, and the versions of torch it was seen to work with."""

    owner: str
    name: str
    why: str
    checked: str


class Patches:
    """Applies replacements and remembers them.  They are for good: one simulated device a process."""

    def __init__(self) -> None:
        self.applied: list[Patch] = []
        self.missing: list[Patch] = []

    def replace(self, owner: Any, name: str, new: Any, *, why: str, checked: str = ALL_VERSIONS) -> None:
        """Set `owner.name`, which must exist."""
        self.wrap(owner, name, lambda _: new, why=why, checked=checked)

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any], *, why: str, checked: str = ALL_VERSIONS) -> None:
        """Set `owner.name` to `make(what was there)`."""
        patch = Patch(getattr(owner, "__name__", type(owner).__name__), name, why, checked)
        if not hasattr(owner, name):
            self.missing.append(patch)
            return
        setattr(owner, name, _frameless(make(getattr(owner, name))))
        self.applied.append(patch)

    def define(self, owner: Any, name: str, new: Any, *, why: str, checked: str = ALL_VERSIONS) -> None:
        """Set `owner.name`, which a build without CUDA may lack, here and where torch imported it by name."""
        setattr(owner, name, _frameless(new))
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("torch") and name in vars(module):
                setattr(module, name, new)
        self.applied.append(Patch(getattr(owner, "__name__", type(owner).__name__), name, why, checked))


def _frameless(new: Any) -> Any:
    """`new`, whose frame Dynamo leaves alone: most of what is replaced is C code, which has no frame to compile."""
    from torch._dynamo.eval_frame import skip_code  # not earlier: the import has side effects that `simulate` prevents

    function = new.__func__ if isinstance(new, staticmethod) else new
    if isinstance(function, types.FunctionType):
        skip_code(function.__code__)
    return new
