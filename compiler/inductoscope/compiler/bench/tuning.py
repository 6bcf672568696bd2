"""What autotuning timed while the program was compiled: configurations of kernels, algorithms of operators.

Listens and changes nothing.  Knows nothing of when the program is compiled.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from inductoscope.compiler.compat import autotuning
from inductoscope.compiler.compat import card as compat
from inductoscope.protocol.bench import Candidate, Tuned


class Listener:
    """Collects what is timed inside of `listening()`."""

    def __init__(self) -> None:
        self._algorithms: dict[tuple[str, str], Tuned] = {}
        self._configurations: dict[str, tuple[Candidate, ...]] = {}

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """For the block."""
        with compat.listening(compat.Ear(_ignore, self._timed_algorithms, self._timed_configurations)):
            yield

    def algorithms(self) -> tuple[Tuned, ...]:
        """The operators that had a choice, with all that was tried for them, the fastest first."""
        return tuple(self._algorithms.values())

    def configurations(self, kernel: str) -> tuple[Candidate, ...]:
        """The configurations that were tried for a kernel, the fastest first."""
        return self._configurations.get(kernel, ())

    def _timed_algorithms(self, operator: str, inputs: str, timings: Mapping[Any, float]) -> None:
        named = {autotuning.candidate_name(way): ms for way, ms in timings.items()}
        self._algorithms[operator, inputs] = Tuned(operator, inputs, _candidates(named))

    def _timed_configurations(self, tuner: Any, timings: Mapping[Any, float]) -> None:
        found = {_text(compat.Configuration.of(launcher.config)): ms for launcher, ms in timings.items()}
        self._configurations[tuner.fn.__name__] = _candidates(found)


def _candidates(timings: Mapping[str, float]) -> tuple[Candidate, ...]:
    """Those that ran, the fastest first; torch takes that one."""
    ran = sorted(((ms, name) for name, ms in timings.items() if math.isfinite(ms)))
    return tuple(Candidate(name, ms * 1e3, chosen=place == 0) for place, (ms, name) in enumerate(ran))


def _text(configuration: compat.Configuration) -> str:
    blocks = ", ".join(f"{name}={size}" for name, size in configuration.blocks.items())
    return f"{blocks}, {configuration.num_warps} warps, {configuration.num_stages} stages"


def _ignore(*_: object) -> None:
    """Padding of matrix products is no choice between kernels that are listed."""
