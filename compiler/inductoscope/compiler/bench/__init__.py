"""The rung `measure`: is the compiled program faster than the eager one, by how much, and does it compute the same?

Knows callables, inputs and devices; it must not know files, targets, positions or how inputs were found.
"""

from inductoscope.compiler.bench.comparison import measure
from inductoscope.compiler.bench.subject import Subject
from inductoscope.compiler.bench.verdicts import Verdict, verdicts

__all__ = ["Subject", "Verdict", "measure", "verdicts"]
