"""Capture: watches Dynamo while the user's program runs once, and tells what happened on the user's own lines.

It only observes.  The modules of this package each know one kind of fact; what belongs to torch stands in
`compat.dynamo`, and nothing here knows Inductor.
"""

from __future__ import annotations

from inductoscope.compiler.capture.caches import Program
from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.capture.observer import Capture

__all__ = ["Capture", "CaptureFacts", "Program"]
