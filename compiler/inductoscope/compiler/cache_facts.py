"""What capture and lowering know of the caches, as one account: a fact for each graph, cache and pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inductoscope.protocol.report import CacheFact, Phase

BYPASS, MISS = "bypass", "miss"


def joined(captured: Sequence[CacheFact], lowered: Sequence[CacheFact]) -> tuple[CacheFact, ...]:
    """Lowering asks torch's caches themselves; capture knows the line that is refused, and what was never saved."""
    facts = list(lowered)
    for told in captured:
        index = next((at for at, fact in enumerate(facts) if _same(fact, told)), None)
        if index is None:
            facts.append(told)
        else:
            facts[index] = _both(facts[index], told)
    return tuple(facts)


def _same(fact: CacheFact, told: CacheFact) -> bool:
    return (fact.cache, fact.graph) == (told.cache, told.graph) and fact.phase is not Phase.BACKWARD


def _both(fact: CacheFact, told: CacheFact) -> CacheFact:
    if told.result == BYPASS:
        return replace(fact, file=told.file, line=told.line) if fact.result == BYPASS else fact
    # An entry that lies there already was saved by a program that did ask for gradients.
    saved_before = fact.result != MISS and fact.key is not None
    return fact if saved_before or fact.result == BYPASS else replace(fact, result=MISS, because=told.because)
