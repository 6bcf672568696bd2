"""What the user can set, read from plain JSON values.

A wrong value never breaks anything: it is reported in a sentence and the default stands.  Knows no LSP types.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.codes import CODES
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Rung
from inductoscope.server.config import CHECK_RUNGS, Config, Probing


class RunMode(enum.Enum):
    """When targets are run."""

    ON_SAVE = "onSave"
    ON_TYPE = "onType"
    MANUAL = "manual"


class InlayHints(enum.Enum):
    """What is shown inside of the text."""

    SHAPES = "shapes"
    OFF = "off"


class Trust(enum.Enum):
    """Whether code of the workspace may be run."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True)
class Settings:
    """The settings of one workspace folder; `docs/lsp-extensions.md` describes each.

    `memory_bytes` is None where nothing is set: the runner then keeps to a part of the machine's memory.  `own` is the
    GPU that `device` names where the project describes it.
    """

    interpreter: tuple[str, ...] = ()
    device: str = "auto"
    run: RunMode = RunMode.ON_SAVE
    rung: Rung = Rung.ASSEMBLE
    timeout_s: float = 120.0
    memory_bytes: int | None = None
    show: frozenset[str] = frozenset()
    hide: frozenset[str] = frozenset()
    inlay_hints: InlayHints = InlayHints.SHAPES
    probe: Probing = Probing.ON
    own: OwnDevice | None = None

    @property
    def device_identity(self) -> str:
        """A name for what is compiled for, which differs where any figure does."""
        return self.device if self.own is None else f"{self.device} {self.own.identity}"

    def publishes(self, code: str) -> bool:
        """Whether findings of that code are shown as diagnostics."""
        known = CODES.get(code)
        default = known is None or known.shown
        return code not in self.hide and (default or code in self.show)

    def over(self, project: Config) -> Settings:
        """These settings, with what they leave at its default taken from the project's own.

        Raises `devices.UnknownDeviceError` for a GPU that neither Inductoscope nor the project knows.
        """
        unset = Settings()
        device = project.device if self.device == unset.device and project.device else self.device
        device, own = own_devices.named(device, project.own)
        return replace(
            self,
            device=device,
            own=own,
            rung=project.rung if self.rung is unset.rung and project.rung else self.rung,
            timeout_s=project.timeout_s if self.timeout_s == unset.timeout_s and project.timeout_s else self.timeout_s,
            memory_bytes=self.memory_bytes or project.memory_bytes,
            probe=project.probe if self.probe is unset.probe and project.probe else self.probe,
        )

    def needs_new_workers(self, other: Settings) -> bool:
        """Whether going from these settings to `other` makes the present workers useless."""
        return self.interpreter != other.interpreter

    def needs_new_runs(self, other: Settings) -> bool:
        """Whether going from these settings to `other` makes the present results out of date."""
        mine, theirs = ((one.interpreter, one.device, one.rung, one.probe) for one in (self, other))
        return mine != theirs


@dataclass(frozen=True)
class Read:
    """Settings that were read, and a sentence for each value that could not be used."""

    settings: Settings
    problems: tuple[str, ...] = ()


class _UnfitError(ValueError):
    """A value does not fit; the message says what would."""


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise _UnfitError("an array of strings")


def _codes(value: Any) -> frozenset[str]:
    codes = frozenset(_words(value))
    if unknown := sorted(codes - CODES.keys()):
        raise _UnfitError(f"an array of finding codes, and {', '.join(unknown)} is none")
    return codes


def _device(value: Any) -> str:
    """The device; a GPU that is not known by itself may be one that a project describes."""
    try:
        return devices.parse(value if isinstance(value, str) else repr(value)).text
    except devices.UnknownGpuError:
        return str(value).strip()
    except devices.UnknownDeviceError as error:
        raise _UnfitError(f"a device ({error})") from None


def _run_mode(value: Any) -> RunMode:
    try:
        return RunMode(value)
    except ValueError:
        raise _UnfitError("one of " + ", ".join(mode.value for mode in RunMode)) from None


def _inlay_hints(value: Any) -> InlayHints:
    try:
        return InlayHints(value)
    except ValueError:
        raise _UnfitError("one of " + ", ".join(choice.value for choice in InlayHints)) from None


def _probing(value: Any) -> Probing:
    try:
        return Probing(value)
    except ValueError:
        raise _UnfitError("one of " + ", ".join(choice.value for choice in Probing)) from None


def _rung(value: Any) -> Rung:
    for rung in CHECK_RUNGS:
        if rung.value == value:
            return rung
    raise _UnfitError("one of " + ", ".join(rung.value for rung in CHECK_RUNGS))


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise _UnfitError("a number of seconds above 0")


def _mebibytes(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value * 2**20 or None
    raise _UnfitError("a whole number of MiB, or 0")


@dataclass(frozen=True)
class _Key:
    name: str
    attribute: str
    read: Callable[[Any], Any] = field(repr=False)


_KEYS = (
    _Key("interpreter", "interpreter", _words),
    _Key("device", "device", _device),
    _Key("run", "run", _run_mode),
    _Key("rung", "rung", _rung),
    _Key("timeout", "timeout_s", _seconds),
    _Key("memory", "memory_bytes", _mebibytes),
    _Key("show", "show", _codes),
    _Key("hide", "hide", _codes),
    _Key("inlayHints", "inlay_hints", _inlay_hints),
    _Key("probe", "probe", _probing),
)

NAMES = tuple(key.name for key in _KEYS)


def read(value: Any) -> Read:
    """Settings from the JSON object of the section `inductoscope`; unknown keys are ignored, null means unset."""
    if value is None:
        return Read(Settings())
    if not isinstance(value, Mapping):
        return Read(Settings(), ("The setting inductoscope should be an object; the defaults are used.",))
    found: dict[str, Any] = {}
    problems: list[str] = []
    for key in _KEYS:
        if value.get(key.name) is None:
            continue
        try:
            found[key.attribute] = key.read(value[key.name])
        except _UnfitError as unfit:
            problems.append(f"The setting inductoscope.{key.name} should be {unfit}; the default is used.")
    return Read(Settings(**found), tuple(problems))
