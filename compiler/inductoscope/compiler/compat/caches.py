"""torch's own caches of compiled graphs, asked for their keys; they save nothing, and answer no program.

AOTAutograd's cache is asked before a captured graph is traced (`try_load`, 2.6 and later), Inductor's before a graph is
lowered (`FxGraphCache.prepare_key`).  Both make their key here as they would in the user's program: with the user's own
settings, which a run of ours has others in place of.  Checked by running on 2.11 to 2.15.
This module knows what torch's keys are made of, and nothing of reports.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import importlib
import inspect
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler.compat import identity, versions
from inductoscope.compiler.compat.inductor import Point, functorch_config, inductor_config, replaced

logger = logging.getLogger(__name__)

_CODECACHE = "torch._inductor.codecache"
_AUTOGRAD_CACHE = "torch._functorch._aot_autograd.autograd_cache"
AOT_LOAD = Point(_AUTOGRAD_CACHE, "AOTAutogradCache.try_load", "where AOTAutograd's cache would be asked")
AOT_KEY = Point(_AUTOGRAD_CACHE, "autograd_cache_key", "makes the key of a captured graph, or says why there is none")
AOT_WANTED = Point("torch._functorch.aot_autograd", "should_use_local_autograd_cache", "lets the cache be asked at all")
FX_COMPILE = Point(
    "torch._inductor.compile_fx",
    "_InProcessFxCompile.codegen_and_compile",
    "Inductor would have asked its cache just before",
)
FX_KEY = Point(_CODECACHE, "FxGraphCache.prepare_key", "makes the key of a graph, or says why there is none")
PICKLE = Point(_CODECACHE, "FxGraphCachePickler.dumps", "what goes into a key, as an object")
EXPLAIN = Point(_CODECACHE, "FxGraphCachePickler.debug_lines", "hashes each part of a key again; left out for its cost")
TORCH_KEY = Point(_CODECACHE, "torch_key", "hashes all sources of torch, which takes a second")
TRITON_KEY = Point(  # in 2.11 and 2.12 a part of CacheBase.get_system
    _CODECACHE, "triton_key", "hashes all sources of Triton; without a GPU it goes into no key", required=False
)
SYSTEM = Point(_CODECACHE, "CacheBase.get_system", "the GPU and its driver, as far as they go into a key")
CHECKED = ("2.13.", "2.15.")
"""Versions on which keys made here were found equal to those of plain programs."""

_TRITON_ALWAYS = (2, 15)
"""The first version whose keys hold Triton's sources without a GPU too."""

CACHE_DIRS = (
    Point(_CODECACHE, "cache_dir", "where the cache of graphs lies"),
    Point(_AUTOGRAD_CACHE, "cache_dir", "where AOTAutograd's cache lies"),
)

ALL_POINTS: tuple[Point, ...] = (
    *(AOT_LOAD, AOT_KEY, AOT_WANTED, FX_COMPILE, FX_KEY, PICKLE, EXPLAIN, TORCH_KEY, TRITON_KEY, SYSTEM),
    *CACHE_DIRS,
)


class Cache(enum.Enum):
    """A cache of compiled graphs."""

    AOT_AUTOGRAD = "aot_autograd"
    FX_GRAPH = "fx_graph"


class Identity(enum.Enum):
    """What stands in a key for torch's sources and for the machine."""

    REAL = "real"  # what torch takes: the key is that of the user's program
    STAND_IN = "stand-in"  # the version: cheap, and enough to compare keys of this process


@dataclass(frozen=True)
class Asked:
    """A graph for which a cache was asked: its key and what that is made of, or why there is none (`refusal`).

    `sizes` are the values of its symbolic inputs.  An entry for a graph that has some holds only under conditions on
    them: `conditions()` are those of this graph as an expression, once it is compiled; `meets` tells whether this
    graph meets those of an entry.
    """

    cache: Cache
    is_backward: bool
    key: str | None
    parts: Mapping[str, str] = field(default_factory=dict)
    refusal: str | None = None
    sizes: tuple[int, ...] = ()
    conditions: Callable[[], str | None] = lambda: None
    meets: Callable[[str], bool] = lambda _: True
    culprit: torch.fx.Node | None = None  # the operator that is refused, where one is


def again(one: Asked, conditions: str | None) -> Asked:
    """A question of an earlier run, about the same graph with the same sizes, whose conditions were `conditions`."""
    meets = _Sizes((), one.sizes, identity.shape_env()).meets
    return replace(one, conditions=lambda: conditions, meets=meets)


@dataclass(frozen=True)
class UserSettings:
    """The user's own values of the settings that a run of ours changes, of Inductor and of AOTAutograd."""

    inductor: Mapping[str, Any]
    functorch: Mapping[str, Any]

    @classmethod
    def now(cls, inductor: Sequence[str], functorch: Sequence[str], options: Mapping[str, Any]) -> UserSettings:
        """The present values of the named settings; `options` are what the program gives `torch.compile`."""
        return cls(
            {name: options.get(name, value) for name, value in _values(inductor_config(), inductor).items()},
            _values(functorch_config(), functorch),
        )

    @property
    def everything(self) -> dict[str, Any]:
        """Both by name."""
        return {**self.inductor, **self.functorch}

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """As if no run of ours had changed them."""
        with inductor_config().patch(dict(self.inductor)), functorch_config().patch(dict(self.functorch)):
            yield

    def are_on(self, cache: Cache) -> bool:
        """Whether the program uses this cache on its own disk."""
        if bool(getattr(torch.compiler.config, "force_disable_caches", False)):
            return False
        if cache is Cache.FX_GRAPH:
            return bool(self.inductor.get("fx_graph_cache", True))
        return bool(self.functorch.get("enable_autograd_cache", True))


@contextlib.contextmanager
def asked(
    users: UserSettings,
    identity: Identity,
    on_asked: Callable[[Asked], None],
    reading: Callable[[], contextlib.AbstractContextManager[None]],
) -> Iterator[None]:
    """Tell `on_asked` of each graph that a cache would be asked for while the block runs: AOTAutograd's before tracing,
    Inductor's once the graph is compiled.  Where this torch lacks a point, nothing is told.

    All that is done beyond what the program asks for is done inside of `reading()`, which has to keep errors to itself.
    """
    maker = _Maker(users, identity)

    def load(original: Callable[..., Any]) -> Callable[..., Any]:
        def try_load(*args: Any, **kwargs: Any) -> Any:
            given = inspect.signature(original).bind(*args, **kwargs).arguments
            with reading():
                on_asked(maker.of_captured(given))
            # Since 2.13 the settings come back too, with what saving would need, which is nothing here.
            returns_settings = "tuple" in str(inspect.signature(original).return_annotation)
            return (None, given["aot_config"]) if returns_settings else None

        return try_load

    def compile_graph(original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_and_compile(self: Any, gm: Any, inputs: Any, to_check: Any, graph_kwargs: Any) -> Any:
            made: Asked | None = None
            with reading():
                made = maker.of_lowered(gm, inputs, to_check, graph_kwargs)
            result = original(self, gm, inputs, to_check, graph_kwargs)
            if made is not None:
                with reading():
                    on_asked(made)
            return result

        return codegen_and_compile

    with contextlib.ExitStack() as stack:
        if AOT_LOAD.exists() and AOT_KEY.exists():
            stack.enter_context(replaced(AOT_WANTED, lambda _: lambda: True))
            stack.enter_context(replaced(AOT_LOAD, load))
        if FX_KEY.exists() and PICKLE.exists():
            stack.enter_context(replaced(FX_COMPILE, compile_graph))
        yield


def has_entry(one: Asked, folder: Path) -> bool:
    """Whether the cache in `folder` has an entry for this graph.  Reads only.

    An entry with conditions is loaded to see them, as torch itself does.
    """
    owner = (FX_KEY if one.cache is Cache.FX_GRAPH else AOT_LOAD).owner()
    with contextlib.ExitStack() as stack:
        for point in CACHE_DIRS:
            stack.enter_context(replaced(point, lambda _: lambda: str(folder)))
        entries = Path(owner._get_tmp_dir_for_key(one.key))
        if not entries.is_dir() or all(entry.name.startswith(".") for entry in entries.iterdir()):
            return False
        if not one.sizes:
            return True
        found, *_ = owner.find_guarded_entry(one.key, True, None, lambda text, _: one.meets(text), list(one.sizes))
        return found is not None


def refusal_text(reason: str) -> str:
    """torch's reason on one line, without the addresses of objects, which say nothing."""
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(reason.split()))


def keys_are_checked() -> bool:
    """Whether keys that are made here were found equal to those of plain programs on this torch."""
    return torch.__version__.startswith(CHECKED)


def unchecked() -> str:
    """Why a folder with entries cannot be looked into on this torch."""
    return f"keys made here were not found to be those of plain programs on torch {torch.__version__}"


def default_folder() -> Path:
    """Where torch keeps its caches when nothing is configured (`default_cache_dir`, 2.3 to 2.15)."""
    return Path(importlib.import_module("torch._inductor.runtime.cache_dir_utils").default_cache_dir())


def torch_sources_key() -> bytes:
    """torch's hash of its own sources.  Takes about a second the first time."""
    return bytes(TORCH_KEY.owner().torch_key())


def know_torch_sources_key(key: bytes) -> None:
    """Take `key` for the hash of torch's sources, unless it is known already (`set`, 2.5 to 2.15)."""
    with contextlib.suppress(Exception):
        TORCH_KEY.owner().torch_key.set(key)


def version_text() -> str:
    """The version of torch with its commit."""
    return f"{torch.__version__} {torch.version.git_version}"


def _values(config: Any, names: Sequence[str]) -> dict[str, Any]:
    known = config.get_config_copy()
    return {name: known[name] for name in names if name in known}


class _Maker:
    """Makes keys as torch would in the user's program."""

    def __init__(self, users: UserSettings, identity: Identity) -> None:
        self._users = users
        self._identity = identity

    def of_captured(self, given: Mapping[str, Any]) -> Asked:
        """The key of a captured graph in AOTAutograd's cache; `given` are the arguments of `try_load`."""
        make = AOT_KEY.owner().autograd_cache_key
        values = {
            **given,
            "gm": getattr(given["mod"], "gm", given["mod"]),
            "example_inputs": given["args"],
            "config": given["aot_config"],
            "fx_config": {name: given.get(name) for name in ("cudagraphs", "boxed_forward_device_index")},  # until 2.11
        }
        wanted = {name: values[name] for name in inspect.signature(make).parameters if name in values}
        sizes = _Sizes.of(given["args"])
        try:
            with self._as_the_user() as parts:
                key = make(**wanted)[0]
        except Exception as refusal:  # torch takes any error for a refusal
            return Asked(Cache.AOT_AUTOGRAD, False, None, refusal=str(refusal))
        return Asked(Cache.AOT_AUTOGRAD, False, key, parts, None, sizes.values, sizes.conditions, sizes.meets)

    def of_lowered(self, gm: Any, inputs: Any, to_check: Any, graph_kwargs: Mapping[str, Any]) -> Asked:
        """The key of a graph in Inductor's cache."""
        backward = bool(graph_kwargs.get("is_backward"))
        sizes = _Sizes.of(inputs)
        with self._as_the_user() as parts:
            made, info = FX_KEY.owner().prepare_key(gm, inputs, graph_kwargs, to_check, remote=False)
        if made is None:
            why = str(info.get("cache_bypass_reason"))
            return Asked(Cache.FX_GRAPH, backward, None, refusal=why, culprit=_uncacheable(gm))
        return Asked(Cache.FX_GRAPH, backward, made[0], parts, None, sizes.values, sizes.conditions, sizes.meets)

    @contextlib.contextmanager
    def _as_the_user(self) -> Iterator[dict[str, str]]:
        """Inside, torch makes keys as in the user's program; gives what they are made of."""
        parts: dict[str, str] = {}
        details = importlib.import_module(_CODECACHE).FxGraphHashDetails

        def pickling(original: Callable[..., Any]) -> Callable[..., Any]:
            def dumps(pickler: Any, value: Any) -> Any:
                if isinstance(value, details):
                    parts.update(_parts(value))
                return original(pickler, value)

            return dumps

        with contextlib.ExitStack() as stack:
            stack.enter_context(self._users.restored())
            stack.enter_context(replaced(PICKLE, pickling))
            stack.enter_context(replaced(EXPLAIN, lambda _: lambda *_: []))
            if self._identity is Identity.STAND_IN:
                stack.enter_context(replaced(TORCH_KEY, lambda _: lambda: version_text().encode()))
                stack.enter_context(replaced(SYSTEM, lambda _: lambda: {"hash": ""}))
            elif not torch.cuda.is_available() and versions.series_of(torch.__version__) < _TRITON_ALWAYS:
                stack.enter_context(replaced(TRITON_KEY, lambda _: lambda: None))
            yield parts


@dataclass(frozen=True)
class _Sizes:
    """The symbolic inputs of a graph, as its cache entries are bound to them."""

    symbols: tuple[torch.SymInt, ...]
    values: tuple[int, ...]
    shape_env: Any

    @classmethod
    def of(cls, inputs: Sequence[Any]) -> _Sizes:
        context = torch._guards.TracingContext.try_get()
        shape_env = context.fake_mode.shape_env if context is not None and context.fake_mode is not None else None
        symbols = tuple(value for value in inputs if isinstance(value, torch.SymInt) and value.node.has_hint())
        return cls(symbols, tuple(int(symbol.node.hint) for symbol in symbols), shape_env)

    def conditions(self) -> str | None:
        """What `FxGraphCache._save_graph` writes into an entry (2.4 to 2.15)."""
        if not self.symbols or self.shape_env is None:
            return None
        guards = self.shape_env.get_pruned_guards(list(self.symbols))
        text = self.shape_env.produce_guards_expression(placeholders=list(self.symbols), guards=guards)
        return str(text) if text else None

    def meets(self, conditions: str) -> bool:
        """Whether these sizes meet the conditions of an entry; evaluating them with numbers makes no guard."""
        if self.shape_env is None:
            return False
        return bool(self.shape_env.evaluate_guards_expression(conditions, list(self.values)))


def _uncacheable(graph: Any) -> torch.fx.Node | None:
    """The first operator that no cache takes (`HigherOrderOperator.cacheable`, 2.5 to 2.15)."""
    modules = (module for module in graph.modules() if isinstance(module, torch.fx.GraphModule))
    nodes = (node for module in modules for node in module.graph.nodes)
    refused = (n for n in nodes if isinstance(n.target, torch._ops.HigherOrderOperator) and not n.target.cacheable())
    return next(refused, None)


def _parts(details: Any) -> dict[str, str]:
    """What a key is made of, part by part, as text: values where they say something, else a hash of them."""
    parts: dict[str, str] = {}
    for name, value in vars(details).items():
        if name == "gm":
            parts["graph"] = _hash(str(getattr(value, "code", value)))
        elif name == "example_inputs":
            parts.update({f"input {index}": _input(one) for index, one in enumerate(value)})
        elif isinstance(value, dict):
            parts.update({f"{name}.{key}": _text(one) for key, one in value.items()})
        else:
            parts[name] = _text(value)
    return parts


def _input(value: Any) -> str:
    """`float32[4, 128]`, with what else there is to say: strides unless plain, the device unless the CPU, gradients."""
    if not isinstance(value, torch.Tensor):
        return _text(value)
    shape, strides = tuple(value.shape), tuple(map(str, value.stride()))
    text = f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
    if strides != _plain_strides(shape):
        text += f" strides [{', '.join(strides)}]"
    if value.device.type != "cpu":
        text += f" on {value.device}"
    return f"{text} that wants gradients" if value.requires_grad else text


def _plain_strides(shape: Sequence[Any]) -> tuple[str, ...]:
    """The strides of a contiguous tensor as text, as far as all inner sizes are numbers; looking at others would pin
    them."""
    strides: list[str] = []
    below = 1
    for size in reversed(shape):
        strides.append(str(below))
        if not isinstance(size, int):
            break
        below *= size
    return tuple(reversed(strides))


def _text(value: Any) -> str:
    """A value as text that is the same in every process: no addresses, and nothing long."""
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.SymInt):
        text = str(value)
    elif isinstance(value, list | tuple):
        text = f"({', '.join(map(_text, value))})"
    elif isinstance(value, set | frozenset):
        text = f"({', '.join(sorted(map(_text, value)))})"
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{key}: {_text(one)}' for key, one in value.items())}}}"
    elif isinstance(value, bytes):
        text = value.hex()
    elif type(value).__name__ == "BoxedBool":
        text = str(bool(value))
    else:
        text = getattr(value, "__qualname__", type(value).__qualname__)
    return text if len(text) <= _LONGEST else f"{text[:40]}… ({_hash(text)})"


_LONGEST = 200


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
