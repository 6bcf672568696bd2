"""What torch decided on a card, found again by what torch decides by.

Holds a recording and the version of torch that asks.  A recording of another minor version answers nothing: names of
candidates, keys and kernel texts are made by torch and differ between versions.
"""

from __future__ import annotations

import hashlib
import re

from inductoscope.protocol import kernel_store
from inductoscope.protocol.recording import RecordedChoice, RecordedKernel, RecordedPadding, Recording

_BACKEND_HASH = re.compile(r"'backend_hash': '\w+'")


class Replay:
    """Answers from `recording` for `torch`, the version of this process; without a recording it has none."""

    def __init__(self, recording: Recording | None = None, torch: str = "") -> None:
        fits = recording is not None and _minor(recording.torch) == _minor(torch)
        self._recording = recording
        self._torch = torch
        usable = recording if recording is not None and fits else Recording("", "")
        self._paddings = {(one.key, one.sizes): one for one in usable.paddings}
        self._choices = {(one.operator, one.inputs): one for one in usable.choices}
        self._kernels = {one.text: one for one in usable.kernels}
        self._fits = fits

    @property
    def as_recorded(self) -> str:
        """`as recorded on a NVIDIA H200, torch 2.11.0`."""
        assert self._recording is not None  # whoever quotes an answer got one
        return f"as recorded on a {self._recording.card}, torch {_plain(self._recording.torch)}"

    @property
    def identity(self) -> str:
        """A text that differs where other answers are given."""
        recorded = repr(self._recording) if self._fits else ""
        return hashlib.sha256(recorded.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def problem(self) -> str | None:
        """Why a recording that is there is not used, as a sentence."""
        if self._recording is None or self._fits:
            return None
        recorded, here = _minor(self._recording.torch), _minor(self._torch)
        return (
            f"What was recorded on a {self._recording.card} was decided by torch {recorded} and is not used with torch "
            f"{here}: record it again with that version."
        )

    @property
    def has_choices(self) -> bool:
        """Whether any choice between kernels was recorded that can be used."""
        return bool(self._choices)

    def padding(self, key: str, sizes: tuple[int, int, int, int]) -> RecordedPadding | None:
        """The padding of the matmul with torch's `key` and these batch, m, k and n."""
        return self._paddings.get((key, sizes))

    def choice(self, operator: str, inputs: str) -> RecordedChoice | None:
        """What autotuning chose for `operator` on inputs with these layouts."""
        return self._choices.get((operator, inputs))

    def kernel(self, source: str) -> RecordedKernel | None:
        """The configuration of the Triton kernel in `source`."""
        return self._kernels.get(identity(source)) if self._kernels else None


def identity(source: str) -> str:
    """A hash of a kernel's text that is the same in every process: without the kernel's own, numbered name and without
    the hash of the installed compiler."""
    text = _BACKEND_HASH.sub("'backend_hash': X", source.strip())
    name = kernel_store.own_name(text)
    return hashlib.sha256((kernel_store.nameless(text, name) if name else text).encode()).hexdigest()


def _minor(version: str) -> str:
    return ".".join(_plain(version).split(".")[:2])


def _plain(version: str) -> str:
    """Without the part that names a build, such as `+cu130`."""
    return version.partition("+")[0]
