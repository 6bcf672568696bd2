"""What capture and lowering know of the caches becomes one account."""

from __future__ import annotations

from inductoscope.compiler.cache_facts import joined
from inductoscope.protocol.report import CacheFact, Phase

REFUSED = CacheFact("aot_autograd", "bypass", ("Unsupported",), "0/0", None, Phase.FORWARD, "m.py", 7)
NEVER = CacheFact("aot_autograd", "miss", ("the backward was never compiled",), "0/0", None, Phase.FORWARD)
FX = CacheFact("fx_graph", "hit", (), "0/0", "f1", Phase.FORWARD)


def aot(result: str, key: str | None = None, graph: str = "0/0") -> CacheFact:
    return CacheFact("aot_autograd", result, ("asked",), graph, key, Phase.FORWARD)


def test_lowering_asks_and_capture_knows_the_line():
    assert joined([REFUSED], [aot("bypass"), FX]) == (
        CacheFact("aot_autograd", "bypass", ("asked",), "0/0", None, Phase.FORWARD, "m.py", 7),
        FX,
    )


def test_what_only_capture_tells_is_kept():
    assert joined([REFUSED], []) == (REFUSED,)
    assert joined([REFUSED], [aot("miss", graph="1/0")]) == (aot("miss", graph="1/0"), REFUSED)


def test_an_entry_that_is_never_saved_is_a_miss():
    (fact,) = joined([NEVER], [aot("hit")])
    assert (fact.result, fact.because) == ("miss", NEVER.because)


def test_an_entry_that_lies_there_is_a_hit_whoever_saved_it():
    assert joined([NEVER], [aot("hit", "a1")]) == (aot("hit", "a1"),)


def test_a_graph_that_is_refused_is_not_a_miss():
    assert joined([NEVER], [aot("bypass")]) == (aot("bypass"),)
