"""Which configuration of a kernel won on the card, where that was recorded.

Knows configurations as facts, and nothing of how they were compiled.
"""

from __future__ import annotations

from dataclasses import replace

from inductoscope.compiler.card.replay import Replay
from inductoscope.protocol.recording import RecordedKernel
from inductoscope.protocol.report import ConfigFact


def configs(facts: tuple[ConfigFact, ...], source: str, replay: Replay) -> tuple[tuple[ConfigFact, ...], str | None]:
    """The configurations of the kernel in `source` with the times of the card, the one that won there being the likely
    one; and a sentence about it."""
    recorded = replay.kernel(source)
    if recorded is None or not facts:
        return facts, None
    timed = tuple(replace(fact, us=_us(fact, recorded)) for fact in facts)
    winner = recorded.winner
    won = [_is(fact, recorded) for fact in timed]
    if not any(won):
        blocks = ", ".join(f"{name}={size}" for name, size in winner.blocks.items())
        return timed, (
            f"On the card a configuration won that is none of these: {blocks}, {winner.num_warps} warps, "
            f"{winner.num_stages} stages, {replay.as_recorded}."
        )
    marked = tuple(replace(fact, likely=is_it) for fact, is_it in zip(timed, won, strict=True))
    among = f"the fastest of {len(recorded.timed)}" if len(recorded.timed) > 1 else "the one that won on the card"
    return marked, f"The configuration is {among}, {replay.as_recorded}."


def _is(fact: ConfigFact, recorded: RecordedKernel) -> bool:
    return recorded.winner.is_same(fact.blocks, fact.num_warps, fact.num_stages)


def _us(fact: ConfigFact, recorded: RecordedKernel) -> float | None:
    same = (one.us for one in recorded.timed if one.is_same(fact.blocks, fact.num_warps, fact.num_stages))
    return next(same, None)
