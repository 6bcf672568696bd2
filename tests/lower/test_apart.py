"""Why neighbours stayed apart, against torch's own log of fusions."""

from __future__ import annotations

import itertools
import logging
import re

import pytest

pytest.importorskip("torch")

import torch

from inductoscope.compiler.lower import apart, groups, lowering
from inductoscope.compiler.lower.facts import LowerFacts
from lower.support.driver import lower

pytestmark = pytest.mark.slow
_LINE = re.compile(r"^cannot fuse (\w+) with (\w+): (.*)$", re.DOTALL)


def broken_by_a_product(x, w):
    y = x.sin()
    return y @ w, y.t().contiguous().cos().sum()


def two_reductions(x, w):
    return (x * 2).sum(0), (w.t() + 1).softmax(0), x.amax(1)


def normalised(x, w):
    return torch.nn.functional.layer_norm(x, (64,)) @ w + x.cumsum(0)


PROGRAMS = (broken_by_a_product, two_reductions, normalised)


class Lines(logging.Handler):
    """Keeps what is logged, as text at the time of logging."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def observed(program, monkeypatch) -> tuple[LowerFacts, list, list[tuple[str, str, str]]]:
    """Facts, what was noted of each graph, and the rejections in torch's log: two names and a reason."""
    notes = []

    def building(noted, *args):
        notes.append(noted)
        return groups.build_groups(noted, *args)

    monkeypatch.setattr(lowering, "build_groups", building)
    log = torch._logging.getArtifactLogger("torch._inductor.scheduler", "fusion")
    lines, level = Lines(), log.level
    log.addHandler(lines)
    log.setLevel(logging.DEBUG)
    try:
        with torch.no_grad():
            facts = lower(lambda: torch.compile(program)(torch.randn(64, 64), torch.randn(64, 64)))
    finally:
        log.removeHandler(lines)
        log.setLevel(level)
    assert facts.problems == ()
    return facts, notes, [match.groups() for match in map(_LINE.match, lines.texts) if match]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_told_is_what_torch_logs_and_asking_logs_nothing(program, monkeypatch):
    _, notes, logged = observed(program, monkeypatch)
    told = [rejection.reason for noted in notes for rejection in noted.rejections]
    assert told == [reason for _, _, reason in logged]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pair_that_was_tried_has_the_reason_of_the_log(program, monkeypatch):
    _, notes, logged = observed(program, monkeypatch)
    (noted,) = notes
    reasons = apart.reasons_apart(noted)
    owner = {leaf.get_name(): at for at, call in enumerate(noted.calls) for leaf in call.nodes}
    for at, others in reasons.items():
        for other, reason in others.items():
            pairs = [(_call(owner, one), _call(owner, two), why) for one, two, why in logged]
            lines = [why for one, two, why in pairs if (one, two) == (min(at, other), max(at, other))]
            assert not lines or reason == lines[-1]


def _call(owner: dict[str, int], name: str) -> int | None:
    """The one call that all operations of a scheduler node (`op0_op1`) ended up in."""
    calls = {owner.get(part) for part in re.findall(r"op\d+", name)}
    return calls.pop() if len(calls) == 1 else None


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_neighbour_has_a_reason_both_ways(program, monkeypatch):
    facts, _, _ = observed(program, monkeypatch)
    by_id = {group.id: group for group in facts.fusion_groups}
    order = list(by_id.values())
    for one, other in itertools.pairwise(order):
        assert other.id in {neighbour.group for neighbour in one.apart_from}
    for group in order:
        for neighbour in group.apart_from:
            (back,) = [back for back in by_id[neighbour.group].apart_from if back.group == group.id]
            assert back.reason == neighbour.reason
            assert (neighbour.reason == apart.EXTERN) == ("extern" in (group.kind, by_id[neighbour.group].kind))
