"""What else goes on on the machine while something is measured, in sentences.

Read off the system before and after; nothing is changed.  What cannot be read is left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

_TIMEOUT_S = 5.0
_CARD = ("clocks.sm", "clocks.max.sm", "clocks.mem", "temperature.gpu", "utilization.gpu")
_BUSY_PERCENT = 25  # this process has just moved its weights there
_THROTTLED = 0.9
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True)
class Conditions:
    """The state of a machine at one moment: loads, and of a GPU its clocks and the processes on it."""

    load: float | None = None
    card: dict[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()


def now(device: str) -> Conditions:
    """As things are."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    if not device.startswith("cuda"):
        return Conditions(load)
    return Conditions(load, _card(), _others())


def sentences(before: Conditions, after: Conditions, device: str) -> tuple[str, ...]:
    """What a reader of the figures should know."""
    return tuple(_of_card(before, after) if device.startswith("cuda") else _of_processor(before))


def _of_processor(before: Conditions) -> Iterator[str]:
    if before.load is not None:
        yield f"load average {before.load:.1f} on {os.cpu_count()} processors before the benchmark"
    try:
        governor = _GOVERNOR.read_text(encoding="utf-8").strip()
    except OSError:
        return
    if governor != "performance":
        yield f"the processors' frequency governor is {governor}: the clock follows the load"


def _of_card(before: Conditions, after: Conditions) -> Iterator[str]:
    clock, most = after.card.get("clocks.sm"), after.card.get("clocks.max.sm")
    if clock is not None and most:
        memory = after.card.get("clocks.mem")
        heat = after.card.get("temperature.gpu")
        yield f"clocks right after timing: SM {clock} of {most} MHz, memory {memory} MHz, at {heat} degrees Celsius"
        if clock < _THROTTLED * most:
            yield f"the GPU ran at {clock / most:.0%} of its highest clock: idle, hot, or held back by its power limit"
    used = before.card.get("utilization.gpu")
    if used is not None and used > _BUSY_PERCENT:
        yield f"the GPU was {used} % busy in the moment before, with what this process itself prepared there"
    others = after.others or before.others
    if others:
        yield f"other processes use this GPU: {', '.join(others)}"
    elif after.card:
        yield "no other process was seen on this GPU"


def _card() -> dict[str, int]:
    lines = _asked([f"--query-gpu={','.join(_CARD)}"])
    values = lines[0].split(",") if lines else []
    pairs = zip(_CARD, (value.strip() for value in values), strict=False)
    return {name: int(value) for name, value in pairs if value.isdigit()}


def _others() -> tuple[str, ...]:
    """Processes on the GPU but this one; inside of a container the driver names none or others' ids."""
    rows = (line.split(",") for line in _asked(["--query-compute-apps=pid,name"]))
    known = {str(os.getpid()), str(os.getppid())}
    return tuple(f"{row[1].strip()} (process {row[0].strip()})" for row in rows if len(row) == 2 and _other(row, known))


def _other(row: Sequence[str], known: set[str]) -> bool:
    pid = row[0].strip()
    return pid.isdigit() and pid not in known and Path(f"/proc/{pid}").exists()


def _asked(query: list[str]) -> list[str]:
    uuid = str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
    which = [f"--id=GPU-{uuid.removeprefix('GPU-')}"] if any(map(str.isdigit, uuid)) else []
    command = ["nvidia-smi", *which, *query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line for line in done.stdout.splitlines() if line.strip()]
