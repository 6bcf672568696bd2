"""Inductor generates code and starts nothing.

While `record_mode` is on, no C++ compiler, no Triton build and no timing run is started, no cache answers, and the
generated module can be loaded.  What cannot be decided without running something is decided by a fixed rule and
reported to `Choices`.  This module knows nothing of kernels, lines or reports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import autotuning
from inductoscope.compiler.compat import card as timed
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.caches import UserSettings

# The user's own settings stay, except those that would start a compiler, time something or replay an old result.
_INDUCTOR = {
    "fx_graph_cache": False,  # a hit brings back the lines of an older text, and an object that wants to run
    "fx_graph_remote_cache": False,
    "bundle_triton_into_fx_graph_cache": False,
    "compile_threads": 1,  # no pool of compiler processes
    "benchmark_fusion": False,  # these four compile and time candidates while scheduling
    "benchmark_epilogue_fusion": False,
    "benchmark_combo_kernel": False,
    "triton.autotune_at_compile_time": False,
    "profile_bandwidth_output": None,
}
_FUNCTORCH = {
    "enable_autograd_cache": False,  # same reason as fx_graph_cache
    "enable_remote_autograd_cache": False,
    "bundled_autograd_cache": False,
    # The compiled forward never runs, so nothing would ask for the backward later.
    "force_non_lazy_backward_lowering": True,
}


def users_settings(options: Mapping[str, Any]) -> UserSettings:
    """The user's own values of what record mode changes; `options` are those of the call of torch.compile."""
    return UserSettings.now(tuple(_INDUCTOR), tuple(_FUNCTORCH), options)


class RecordedKernel:
    """Stands in a loaded module where a compiled kernel would.  It cannot run."""

    def __init__(self, source: str) -> None:
        self.source = source

    def run(self, *_args: Any, **_kwargs: Any) -> None:
        """Refuses: the graph is run op by op instead.  Raises RuntimeError."""
        raise RuntimeError("this kernel was generated, not built")

    __call__ = run


@dataclass(frozen=True)
class Candidate:
    """A way to compute an operator; `us` and `chosen` are known where a card has timed it."""

    name: str
    us: float | None = None
    chosen: bool | None = None


@dataclass
class Choices:
    """Decisions that Inductor makes by timing: a sentence and the candidates, by graph node.

    They are taken as `replay` has them recorded, else by rule.
    """

    replay: Replay = field(default_factory=Replay)
    by_node: dict[torch.fx.Node | None, str] = field(default_factory=dict)
    candidates: dict[torch.fx.Node | None, tuple[Candidate, ...]] = field(default_factory=dict)

    def note(self, node: torch.fx.Node | None, text: str, candidates: Sequence[Candidate]) -> None:
        """Remember a sentence about the operator that is being lowered, and the ways to compute it by name."""
        if node is not None:
            self.by_node[node] = text
            self.candidates[node] = tuple(candidates)


def settings(user: Mapping[str, Any]) -> dict[str, Any]:
    """The user's own `mode` and `options`, with what record mode needs put over them."""
    return {**user, **compat.known_settings(compat.inductor_config(), _INDUCTOR)}


def _nothing(_method: str, _args: Sequence[Any]) -> None:
    """For those who need not know."""


@contextlib.contextmanager
def record_mode(choices: Choices, on_start: Callable[[str, Sequence[Any]], None] = _nothing) -> Iterator[None]:
    """Keep Inductor from starting anything for the duration of the block.

    `on_start` is told of each compiler that it would start: the method of AsyncCompile and its arguments.
    """
    functorch = compat.functorch_config()
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(functorch.patch(compat.known_settings(functorch, _FUNCTORCH)))
        enter(compat.async_compile_replaced(lambda method: _recorder_of(method, on_start)))
        # Inductor asks the CPU for its vector instructions, then builds and loads a library for each to see whether the
        # C++ compiler knows them too.  That takes seconds and starts g++, so the CPU's answer is taken as it is: right
        # wherever compiling for this CPU works at all.  A user's own TORCHINDUCTOR_VEC_ISA_OK holds.
        enter(compat.replaced(compat.VECTOR_PROBE, lambda _: lambda *_args, **_kwargs: True))
        enter(compat.replaced(compat.COMPILER_SEARCH, lambda _: lambda *_args, **_kwargs: compat.cpp_compiler()))
        enter(compat.replaced(compat.LOAD_CPP_WRAPPER, lambda _: lambda *_args, **_kwargs: RecordedKernel("")))
        enter(compat.replaced(compat.SELECT_ALGORITHM, lambda original: _selecting(original, choices)))
        yield


def _recorder_of(method: str, on_start: Callable[[str, Sequence[Any]], None]) -> Callable[..., Any]:
    """A replacement for a method of AsyncCompile: keeps the source, starts nothing."""

    def record(_self: Any, *args: Any, **kwargs: Any) -> RecordedKernel:
        on_start(method, (*args, *kwargs.values()))
        return RecordedKernel(_source_among(method, args, kwargs))

    return record


def _source_among(method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The source text among the arguments: `triton(name, source)`, `cpp_pybinding(argtypes, source)`, `cpp(source)`."""
    if "source_code" in kwargs:
        return str(kwargs["source_code"])
    position = {"triton": 1, "cpp_pybinding": 1, "halide": 1, "cutedsl": 1, "pallas": 1, "nv_universal_gemm": 1}
    at = position.get(method, 0)
    text = args[at] if len(args) > at else ""
    return text if isinstance(text, str) else ""


def _selecting(original: Callable[..., Any], choices: Choices) -> Callable[..., Any]:
    """max-autotune times each candidate on the device.

    Take the one that won on the card where that was recorded, else the library call, else Inductor's first template.
    """

    def select(cache: Any, name: str, candidates: list[Any], *args: Any, **kwargs: Any) -> Any:
        usable = [candidate for candidate in candidates if candidate is not None]
        if len(usable) > 1 and (won := _recorded(name, usable, args[0] if args else kwargs["input_nodes"], choices)):
            usable = [won]
        if len(usable) > 1:
            library = [candidate for candidate in usable if autotuning.is_library_call(candidate)]
            choices.note(
                compat.current_node(),
                f"{name}: Inductor times {len(usable)} candidates on the device; "
                f"shown is {'the library call' if library else 'the first template'}",
                [Candidate(autotuning.candidate_name(candidate)) for candidate in usable],
            )
            usable = (library or usable)[:1]
        return original(cache, name, usable, *args, **kwargs)

    return select


def _recorded(name: str, usable: Sequence[Any], input_nodes: Sequence[Any], choices: Choices) -> Any:
    """The candidate that won on the card, if that was recorded and is one of these; None otherwise."""
    recorded = choices.replay.choice(name, timed.layouts(input_nodes)) if choices.replay.has_choices else None
    named = [(autotuning.candidate_name(candidate), candidate) for candidate in usable]
    won = next((one for called, one in named if recorded is not None and called == recorded.winner), None)
    if recorded is not None and won is not None:
        times = {way.name: way.us for way in recorded.ways}
        text = (
            f"{name}: {recorded.winner} is the fastest of {len(recorded.ways)} candidates, {choices.replay.as_recorded}"
        )
        told = [Candidate(called, times.get(called), one is won) for called, one in named]
        fastest_first = sorted(told, key=lambda way: (not way.chosen, way.us is None, way.us or 0.0))
        choices.note(compat.current_node(), text, fastest_first)
    return won
