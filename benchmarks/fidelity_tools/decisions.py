"""What torch decides by timing while programs run on the real side, as a device file that a simulation can follow.

The only part of the real side that uses the product: its recorder, which listens and changes no decision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inductoscope.compiler.card import figures
from inductoscope.compiler.card.decisions import Recorder
from inductoscope.protocol import own_devices
from inductoscope.protocol.own_devices import OwnDevice


@contextlib.contextmanager
def recorded_into(file: Path) -> Iterator[None]:
    """Record what the block decides; `file` gets the card's figures and the decisions when it ends."""
    recorder = Recorder()
    try:
        with recorder.recording():
            yield
    finally:
        card, decided = figures.read(), recorder.recorded()
        assert card.recording is not None  # what is read from a card says with which torch
        found = replace(card.recording, paddings=decided.paddings, choices=decided.choices, kernels=decided.kernels)
        device = replace(card.device, key=file.stem)
        file.write_text(own_devices.to_text(OwnDevice(device, found)), encoding="utf-8")
