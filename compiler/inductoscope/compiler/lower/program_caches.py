"""What torch's other caches would do at the next start: those of built kernels, of timed configurations, of dynamic
sizes, and the remote ones.

For a graph that would have had something built or timed there is an entry of its own; what a program has only once
stands after them.  Folders are only looked into, and nothing remote is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductoscope.compiler.compat import caches as compat
from inductoscope.compiler.compat import kernel_caches, profile, remote_caches
from inductoscope.compiler.compat.profile import Keeping
from inductoscope.compiler.lower.cache_log import ELSEWHERE, HIT, MISS, OFF, UNKNOWN, UsersCaches
from inductoscope.protocol.report import CacheFact, Kernel, KernelLanguage

_LOG = logging.getLogger(__name__)

ON = "on"
"""A cache that is in use and has no answer of its own."""

CPP, AUTOTUNE, TRITON, BUNDLE, CODE, PGO = "cpp_code", "autotune", "triton", "triton_bundle", "generated_code", "pgo"

MOST_TOLD = 8
"""Kernels and sizes that are named one by one."""

_PROFILE = {
    Keeping.ABSENT: "this torch keeps no profile",
    Keeping.NO_JOB_ID: "it is kept only for a program that has a job id (TORCH_COMPILE_JOB_ID)",
    Keeping.TURNED_OFF: "it is turned off",
}
_REMOTE_ON = "it is on, and nothing remote is asked here"
_REMOTE_UNSET = "it is on by itself only inside of Meta"

Answer = tuple[str, tuple[str, ...]]
"""A result, and why."""


@dataclass
class ProgramCaches:
    """Takes note of what compilers would have been started for; `reading` is entered around all that only looks, and
    keeps errors to itself."""

    users: UsersCaches
    reading: Callable[[str], AbstractContextManager[None]]
    _attempts: dict[str, int] = field(default_factory=dict)
    _libraries: dict[str, list[str]] = field(default_factory=dict)
    _settings: Mapping[str, Any] = field(default_factory=dict)

    def compiling(self, graph: str, attempt: int, settings: Mapping[str, Any]) -> Callable[[str, Sequence[Any]], None]:
        """What to tell of each start of a compiler (a method of AsyncCompile and its arguments) for this graph.

        `settings` are the user's own, where they are not the present ones.
        """
        self._settings = settings
        if self._attempts.get(graph, attempt) != attempt:
            self._libraries.pop(graph, None)
        self._attempts[graph] = attempt

        def started(method: str, args: Sequence[Any]) -> None:
            with self.reading(graph):
                key = kernel_caches.library_key(method, args)
                if key is not None and key not in self._libraries.setdefault(graph, []):
                    self._libraries[graph].append(key)

        return started

    def libraries(self, graph: str) -> tuple[str, ...]:
        """The keys of the C++ libraries that would have been built for this graph."""
        return tuple(self._libraries.get(graph, ()))

    def built_before(self, graph: str, keys: Sequence[str]) -> None:
        """Take in the libraries of a graph that an earlier run has compiled; after `compiling`."""
        known = self._libraries.setdefault(graph, [])
        known += [key for key in keys if key not in known]

    def facts(self, kernels: Sequence[Kernel]) -> tuple[CacheFact, ...]:
        """For each graph, then for the program; nothing where no graph was compiled."""
        found: list[CacheFact] = []
        if self._attempts:
            with self.reading("of the program"):
                found.extend(self._of_graphs(kernels))
                found.extend(self._of_program(kernels))
        return tuple(found)

    def _of_graphs(self, kernels: Sequence[Kernel]) -> Iterator[CacheFact]:
        for graph in self._attempts:
            if keys := self._libraries.get(graph):
                yield CacheFact(CPP, *self._built(keys), graph)
            if timed := _timed_on_the_card([one for one in kernels if one.graph == graph]):
                yield CacheFact(AUTOTUNE, *self._timed(timed), graph)

    def _of_program(self, kernels: Sequence[Kernel]) -> Iterator[CacheFact]:
        if any(one.language is KernelLanguage.TRITON for one in kernels):
            yield CacheFact(TRITON, *self._triton())
            yield CacheFact(BUNDLE, *self._bundled())
        yield CacheFact(CODE, ON, ("the texts of wrappers and kernels are a part of each graph's FX-graph entry",))
        yield CacheFact(PGO, *self._profile())
        for one in remote_caches.remote_caches(self._settings):
            value = "not set" if one.value is None else one.value
            why = _REMOTE_ON if one.is_on else _REMOTE_UNSET if one.value is None else "it is turned off"
            yield CacheFact(one.cache, UNKNOWN if one.is_on else OFF, (why, f"{one.setting} is {value}"))

    def _built(self, keys: Sequence[str]) -> Answer:
        folder = self.users.folder
        if folder is None:
            return UNKNOWN, (ELSEWHERE,)
        if not kernel_caches.keys_are_checked():
            return UNKNOWN, (compat.unchecked(),)
        there = sum(kernel_caches.has_library(key, folder) for key in keys)
        lies = _lies(there, len(keys), ("C++ library lies", "C++ libraries lie"), f"built in {folder}")
        return _result(there, len(keys)), lies

    def _timed(self, kernels: Sequence[Kernel]) -> Answer:
        folder = self.users.folder
        if self._settings.get("autotune_local_cache") is False:
            return OFF, ("torch._inductor.config.autotune_local_cache is False",)
        if folder is None:
            return UNKNOWN, (ELSEWHERE,)
        found = {one.name: kernel_caches.timed_configuration(one.source or "", folder) for one in kernels}
        told = [f"{name}: {_settings(best)}" for name, best in found.items() if best is not None]
        more = [f"and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
        lies = _lies(len(told), len(found), ("kernel has", "kernels have"), f"a timed configuration in {folder}")
        return _result(len(told), len(found)), (*lies, *told[:MOST_TOLD], *more)

    def _triton(self) -> Answer:
        if self.users.folder is None:
            return UNKNOWN, (ELSEWHERE,)
        folder = self.users.triton or self.users.folder / "triton" / "0"
        if not folder.is_dir() or next(folder.iterdir(), None) is None:
            return MISS, (f"nothing was ever built in {folder}",)
        return UNKNOWN, (f"{folder} has entries; Triton makes its keys while it compiles, which is not done here",)

    def _bundled(self) -> Answer:
        if not self._settings.get("bundle_triton_into_fx_graph_cache"):
            return OFF, ("torch._inductor.config.bundle_triton_into_fx_graph_cache is off",)
        return ON, ("built Triton kernels are a part of each graph's FX-graph entry: a hit there needs no Triton",)

    def _profile(self) -> Answer:
        kept = profile.keeping()
        if kept is not Keeping.ON:
            return OFF, (_PROFILE[kept],)
        if self.users.folder is None:
            return UNKNOWN, (ELSEWHERE,)
        return _of_profile(profile.profile_in(self.users.folder))


def _of_profile(file: Path) -> Answer:
    """What the profile of an earlier run would change."""
    if not file.is_file():
        return MISS, (f"no profile in {file}",)
    try:
        dynamic = profile.dynamic_from(file)
    except Exception:  # another version's profile, or a broken file; torch starts without it too
        _LOG.warning("cannot read the profile %s", file, exc_info=True)
        return MISS, (f"torch cannot read {file}",)
    if dynamic is None:
        return MISS, (f"{file} says nothing of this code",)
    if not dynamic:
        return HIT, (f"{file} knows this code, and no size of it that differed",)
    more = f" and {len(dynamic) - MOST_TOLD} more" if len(dynamic) > MOST_TOLD else ""
    named = ", ".join(dynamic[:MOST_TOLD])
    return HIT, (f"dynamic from the first compilation on, which they are not here: {named}{more}", f"read from {file}")


def _timed_on_the_card(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Generated Triton kernels with several configurations, once each."""
    chosen = (
        one
        for one in kernels
        if one.language is KernelLanguage.TRITON and not one.user_written and one.launch is not None
        if (one.launch.configs or 1) > 1 and one.source
    )
    return list({one.name: one for one in chosen}.values())


def _result(there: int, wanted: int) -> str:
    return HIT if there == wanted else MISS


def _lies(there: int, wanted: int, words: tuple[str, str], where: str) -> tuple[str, ...]:
    """`2 of 3 C++ libraries lie built in FOLDER`."""
    return (f"{there} of {wanted} {words[wanted > 1]} {where}",)


def _settings(best: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in best.items())
