"""Graphs that an earlier run has lowered: their facts come from disk, with the lines that their nodes have now."""

from inductoscope.compiler.lower.reuse.reuse import Journal, Lookup, Reuse
from inductoscope.compiler.lower.reuse.shelf import Shelf

__all__ = ["Journal", "Lookup", "Reuse", "Shelf"]
