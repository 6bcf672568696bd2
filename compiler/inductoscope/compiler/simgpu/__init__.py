"""A GPU that this machine does not have, as far as compiling needs one.

    simulation = simulate(devices.find("H200"))     # once a process, before the program touches CUDA
    ... the user's program runs as it is: device="cuda", .cuda(), torch.compile, backward() ...
    simulation.syncs(); simulation.notes(); simulation.launches()

A tensor on "cuda" is a fake tensor; where the program looks at a value, the part of the computation that the value
depends on runs on the CPU.  Inductor is given the graphs unchanged and generates the kernels of the named GPU.  Nothing
initialises CUDA, and importing this package changes nothing.
"""

from inductoscope.compiler.simgpu.assemble import Assembled, AssembleError, assemble
from inductoscope.compiler.simgpu.errors import SimulationUnavailableError
from inductoscope.compiler.simgpu.machine_code import disassemble
from inductoscope.compiler.simgpu.records import Note, Topic, UserLaunch
from inductoscope.compiler.simgpu.simulation import Simulation, active, simulate

__all__ = [
    "AssembleError",
    "Assembled",
    "Note",
    "Simulation",
    "SimulationUnavailableError",
    "Topic",
    "UserLaunch",
    "active",
    "assemble",
    "disassemble",
    "simulate",
]
