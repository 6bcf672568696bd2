"""What can go wrong with the simulated device, in sentences for the user."""

from __future__ import annotations


class SimulationUnavailableError(RuntimeError):
    """This process cannot simulate a GPU; the message says why and what to do instead."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The GPU cannot be simulated here: {why}  Graphs, breaks, recompiles and the CPU's kernels are there all "
            "the same: use `--device cpu`."
        )


class UnknownValueError(Exception):
    """The value of a device tensor cannot be told; the message says why."""
