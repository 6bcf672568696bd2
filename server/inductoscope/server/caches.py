"""What torch's caches do with the graphs of a program, in words."""

from __future__ import annotations

from inductoscope.protocol.report import CacheFact, Phase, TargetReport

_NAMES = {"aot_autograd": "AOTAutograd cache", "fx_graph": "FX-graph cache"}


def name(fact: CacheFact) -> str:
    """The cache as torch's documentation calls it."""
    return _NAMES.get(fact.cache, fact.cache.replace("_", " "))


def subject(fact: CacheFact) -> str:
    """`graph 0/0, backward`: what the cache was asked for."""
    if fact.graph is None:
        return "the program"
    # AOTAutograd's entry is for the captured graph, with both passes in it.
    backward = ", backward" if fact.phase is Phase.BACKWARD else ""
    return f"graph {fact.graph}{backward}"


def line(fact: CacheFact) -> str:
    """`FX-graph cache, graph 0/0: miss`, and why."""
    because = "; ".join(fact.because)
    return f"{name(fact)}, {subject(fact)}: {fact.result}{f' ({because})' if because else ''}"


def summary(report: TargetReport) -> str:
    """`AOTAutograd cache 1 hit, 2 miss; FX-graph cache 3 hit`."""
    counts: dict[str, dict[str, int]] = {}
    for fact in report.caches:
        of = counts.setdefault(name(fact), {})
        of[fact.result] = of.get(fact.result, 0) + 1
    return "; ".join(
        f"{cache} {', '.join(f'{number} {result}' for result, number in of.items())}" for cache, of in counts.items()
    )
