"""Rung `lower`: what Inductor makes of each captured graph, without building or running any of it."""

from inductoscope.compiler.lower.cache_log import UsersCaches
from inductoscope.compiler.lower.facts import Backward, Depth, LowerFacts
from inductoscope.compiler.lower.lowering import Lowering

__all__ = ["Backward", "Depth", "LowerFacts", "Lowering", "UsersCaches"]
