"""The shape probe: what would happen if a dimension of the inputs had another size?"""

from inductoscope.compiler.probing.cost import affordable
from inductoscope.compiler.probing.probe import Probed, Subject, probe
from inductoscope.compiler.probing.wanted import call_to_probe

__all__ = ["Probed", "Subject", "affordable", "call_to_probe", "probe"]
