"""What torch's caches do with the graphs of a program, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from inductoscope.protocol.report import CacheFact, Phase, TargetReport

_NAMES = {
    "aot_autograd": "AOTAutograd cache",
    "fx_graph": "FX-graph cache",
    "cpp_code": "built C++ kernels",
    "autotune": "timed configurations",
    "triton": "Triton's own cache",
    "triton_bundle": "bundled Triton kernels",
    "generated_code": "generated code",
    "pgo": "profile of dynamic sizes (PGO)",
}
UNKNOWN = "unknown"
_REMOTE, _UNSET = "remote_", " is not set"
_REMOTES = {
    "remote_fx_graph": "FX-graph",
    "remote_aot_autograd": "AOTAutograd",
    "remote_autotune": "autotuning",
    "remote_autotune_bundle": "bundled autotuning",
    "remote_pgo": "PGO",
}


def name(fact: CacheFact) -> str:
    """The cache as torch's documentation calls it."""
    if fact.cache.startswith(_REMOTE):
        caches = fact.cache.split("+")
        return f"remote {', '.join(_REMOTES.get(one, one) for one in caches)} {'caches' if caches[1:] else 'cache'}"
    return _NAMES.get(fact.cache, fact.cache.replace("_", " "))


def subject(fact: CacheFact) -> str:
    """`graph 0/0, backward`: what the cache was asked for."""
    if fact.graph is None:
        return "the program"
    # AOTAutograd's entry is for the captured graph, with both passes in it.
    backward = ", backward" if fact.phase is Phase.BACKWARD else ""
    return f"graph {fact.graph}{backward}"


def told(report: TargetReport) -> tuple[CacheFact, ...]:
    """The facts as people want them: remote caches of one result and reason together, and why something is not known
    said once."""
    seen: set[str] = set()
    found = []
    for fact in _together(report.caches):
        found.append(replace(fact, because=tuple(one for one in fact.because if one not in seen)))
        if fact.result == UNKNOWN:
            seen.update(fact.because)
    return tuple(found)


def line(fact: CacheFact) -> str:
    """`FX-graph cache, graph 0/0: miss`, and why."""
    because = "; ".join(fact.because)
    return f"{name(fact)}, {subject(fact)}: {fact.result}{f' ({because})' if because else ''}"


def summary(report: TargetReport) -> str:
    """`AOTAutograd cache 1 hit, 2 miss; FX-graph cache 3 hit`: of what is asked for graphs."""
    counts: dict[str, dict[str, int]] = {}
    for fact in report.caches:
        if fact.graph is not None:
            of = counts.setdefault(name(fact), {})
            of[fact.result] = of.get(fact.result, 0) + 1
    return "; ".join(
        f"{cache} {', '.join(f'{number} {result}' for result, number in of.items())}" for cache, of in counts.items()
    )


def _together(facts: Sequence[CacheFact]) -> Iterator[CacheFact]:
    for (is_remote, *_), group in groupby(facts, _kind):
        same = list(group)
        if is_remote and same[1:]:
            settings = ", ".join(one.because[-1].removesuffix(_UNSET) for one in same)
            unset = " are not set" if all(one.because[-1].endswith(_UNSET) for one in same) else ""
            because = (same[0].because[0], settings + unset)
            yield replace(same[0], cache="+".join(one.cache for one in same), because=because)
        else:
            yield from same


def _kind(fact: CacheFact) -> tuple[bool, str, str]:
    is_remote = fact.cache.startswith(_REMOTE) and bool(fact.because)
    return is_remote, fact.result, fact.because[0] if is_remote else ""
