"""What the user can set, read from plain JSON values.

A wrong value never breaks anything: it is reported in a sentence and the default stands.  `KEYS` is the one list of
settings: `docs/settings.md` and the manifest of the VS Code extension are made from it.  Knows no LSP types.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.codes import CODES
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Rung
from inductoscope.server.config import CHECK_RUNGS, Config, Probing

E = TypeVar("E", bound=enum.Enum)


class RunMode(enum.Enum):
    """When targets are run."""

    ON_SAVE = "onSave"
    ON_TYPE = "onType"
    MANUAL = "manual"


class Hints(enum.Enum):
    """What can be shown inside of the text."""

    SHAPES = "shapes"
    KERNELS = "kernels"


class Effect(enum.Enum):
    """What a change of a setting does at once; nothing ever restarts the server."""

    WORKERS = "ends the workers of the folder and checks again"
    RUNS = "checks again"
    NEXT_RUN = "holds from the next run on"
    DISPLAY = "changes what is shown"


class Trust(enum.Enum):
    """Whether code of the workspace may be run."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True)
class Settings:
    """The settings of one workspace folder; `docs/settings.md` describes each.

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
    inlay_hints: frozenset[Hints] = frozenset({Hints.SHAPES})
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
        return self._differs(other, Effect.WORKERS)

    def needs_new_runs(self, other: Settings) -> bool:
        """Whether going from these settings to `other` makes the present results out of date."""
        return self._differs(other, Effect.WORKERS) or self._differs(other, Effect.RUNS)

    def _differs(self, other: Settings, effect: Effect) -> bool:
        names = [key.attribute for key in KEYS if key.effect is effect]
        return any(getattr(self, name) != getattr(other, name) for name in names)


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


def _one_of(choices: type[E]) -> Callable[[Any], E]:
    def read_choice(value: Any) -> E:
        try:
            return choices(value)
        except ValueError:
            raise _UnfitError("one of " + ", ".join(str(choice.value) for choice in choices)) from None

    return read_choice


def _hints(value: Any) -> frozenset[Hints]:
    """The categories; `"off"` stands for none."""
    listed = [] if value == "off" else [value] if isinstance(value, str) else value
    try:
        return frozenset(map(Hints, listed))
    except (ValueError, TypeError):
        raise _UnfitError("an array of " + ", ".join(hint.value for hint in Hints)) from None


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
class Key:
    """A setting: its name and attribute, what a value of it has to be (JSON Schema), and what it means (Markdown).

    `choices` says of each value of an enumeration what it does.  `sensitive` ones are not taken from a workspace that
    is not trusted.
    """

    name: str
    attribute: str
    effect: Effect
    schema: dict[str, Any]
    default: Any
    meaning: str
    read: Callable[[Any], Any] = field(repr=False)
    choices: dict[str, str] = field(default_factory=dict)
    sensitive: bool = False


_CODE_LIST = {"type": "array", "uniqueItems": True}

KEYS = (
    Key(
        "interpreter",
        "interpreter",
        Effect.WORKERS,
        {"type": "array", "items": {"type": "string"}},
        [],
        'The command that starts the Python that has your `torch`, word by word, such as `[".venv/bin/python"]` or '
        '`["conda", "run", "--no-capture-output", "-n", "torch", "python"]`. When empty it is found: `python` of the '
        "project, an active virtual environment, `.venv` or `venv` in the folder, the first Python on `PATH`.",
        _words,
        sensitive=True,
    ),
    Key(
        "device",
        "device",
        Effect.RUNS,
        {
            "type": "string",
            "pattern": "^(auto|cpu|cuda|sim:.+)$",
            "patternErrorMessage": "One of auto, cpu, cuda, or sim:NAME such as sim:H200.",
        },
        "auto",
        "What to compile for: `auto`, `cpu`, `cuda`, or a simulated GPU as `sim:NAME`, such as `sim:H200`. A simulated "
        "GPU needs no GPU in the machine.",
        _device,
    ),
    Key(
        "run",
        "run",
        Effect.NEXT_RUN,
        {"type": "string"},
        RunMode.ON_SAVE.value,
        "When your program is run to see what becomes of it.",
        _one_of(RunMode),
        {
            "onSave": "When a file is opened or saved.",
            "onType": "While typing, once the typing pauses.",
            "manual": "Only when asked for by a command.",
        },
    ),
    Key(
        "rung",
        "rung",
        Effect.RUNS,
        {"type": "string"},
        Rung.ASSEMBLE.value,
        "How far a check goes. Each step costs more and answers more.",
        _rung,
        {
            "capture": "Capture the graphs: breaks, guards, recompiles. Quickest.",
            "lower": "Also generate the kernels: fusion groups, kernel source.",
            "assemble": "Also assemble the kernels for the device: registers, spills, occupancy.",
        },
    ),
    Key(
        "timeout",
        "timeout_s",
        Effect.NEXT_RUN,
        {"type": "number", "exclusiveMinimum": 0},
        120,
        "Seconds after which a run of your program is ended.",
        _seconds,
    ),
    Key(
        "memory",
        "memory_bytes",
        Effect.NEXT_RUN,
        {"type": "integer", "minimum": 0},
        0,
        "MiB of memory after which a run of your program is ended; `0`: four fifths of the machine's.",
        _mebibytes,
    ),
    Key(
        "show",
        "show",
        Effect.DISPLAY,
        {**_CODE_LIST, "items": {"type": "string", "enum": [one.name for one in CODES.values() if not one.shown]}},
        [],
        "Findings to show that are left out by default.",
        _codes,
    ),
    Key(
        "hide",
        "hide",
        Effect.DISPLAY,
        {**_CODE_LIST, "items": {"type": "string", "enum": list(CODES)}},
        [],
        "Findings to leave out, by code, such as `specialized`.",
        _codes,
    ),
    Key(
        "inlayHints",
        "inlay_hints",
        Effect.DISPLAY,
        {**_CODE_LIST, "items": {"type": "string", "enum": [hint.value for hint in Hints]}},
        [Hints.SHAPES.value],
        "What is shown inside of the text.",
        _hints,
        {
            "shapes": "The dtype and the sizes of each variable that was compiled, beside it.",
            "kernels": "The kernel that a line became with its predicted time, behind it.",
        },
    ),
    Key(
        "probe",
        "probe",
        Effect.RUNS,
        {"type": "string"},
        Probing.ON.value,
        "Whether to find out what other sizes of the inputs would do: one more compilation, one for each size, or "
        "none.",
        _one_of(Probing),
        {"on": "Try other sizes of the inputs after a run, when all else is shown.", "off": "Do not."},
    ),
)

NAMES = tuple(key.name for key in KEYS)


def read(value: Any) -> Read:
    """Settings from the JSON object of the section `inductoscope`; unknown keys are ignored, null means unset."""
    if value is None:
        return Read(Settings())
    if not isinstance(value, Mapping):
        return Read(Settings(), ("The setting inductoscope should be an object; the defaults are used.",))
    found: dict[str, Any] = {}
    problems: list[str] = []
    for key in KEYS:
        if value.get(key.name) is None:
            continue
        try:
            found[key.attribute] = key.read(value[key.name])
        except _UnfitError as unfit:
            problems.append(f"The setting inductoscope.{key.name} should be {unfit}; the default is used.")
    return Read(Settings(**found), tuple(problems))
