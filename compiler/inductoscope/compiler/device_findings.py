"""What a simulated device saw, as findings: where the host waits for the device, and which values were guessed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inductoscope.compiler import looks_in_source
from inductoscope.compiler.marks import finding_at
from inductoscope.protocol.report import DeviceSync, Finding, Place, Rung


def of_syncs(syncs: Iterable[DeviceSync]) -> tuple[Finding, ...]:
    """One finding for each place and sort of look at a device value."""
    return tuple(_guess(sync) if sync.guessed else _wait(sync) for sync in syncs)


def with_expression(sync: DeviceSync) -> DeviceSync:
    """The look with the program's own words for it, where its line has only one."""
    return replace(sync, expression=looks_in_source.said(sync.file, sync.line, sync.what))


def _named(sync: DeviceSync) -> str:
    return f"`{sync.expression}`" if sync.expression is not None else sync.what


def _wait(sync: DeviceSync) -> Finding:
    value = f" (here {sync.value})" if sync.value is not None else ""
    often = "" if sync.count == 1 else f", {sync.count} times in these calls"
    message = (
        f"The host waits for the GPU here: {_named(sync)} looks at a value that is on the device{value}{often}. "
        "Keep the value on the device (torch.where, masks, tensors in place of numbers), or look at it less often."
    )
    return finding_at("device-sync", Place(sync.file, sync.line), message, Rung.CAPTURE, count=sync.count)


def _guess(sync: DeviceSync) -> Finding:
    because = f": {sync.reason}" if sync.reason else ""
    assumed = f" {sync.value}" if sync.value is not None else " a value"
    message = (
        f"{_named(sync)} looks at a device value that could not be computed without a GPU{because}. What is shown from "
        f"here on assumes{assumed}; a real run may take another path."
    )
    return finding_at("guessed-value", Place(sync.file, sync.line), message, Rung.CAPTURE, count=sync.count)
