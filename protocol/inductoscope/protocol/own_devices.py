"""GPUs that somebody described: a table of figures over those of a known GPU, and what was recorded on the card.

A table is what stands in `[tool.inductoscope.devices.NAME]` or, as a whole, in a device file (JSON):

    base = "H100"             whose figures hold where the table gives none
    bandwidth_gbps = 2039     any figure of `devices.FIGURES`; `limits` is a table of `devices.Limits`
    source = "datasheet"      where the figures come from
    sources = {…}             where single figures come from, by name

A device file may also have `key`, the name after `sim:` (else that of the file), and `recording`.  Standard library
only; knows nothing of where in a text a value stands, which whoever reads the text finds out by `OwnDeviceError.entry`.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inductoscope.protocol import codec, devices
from inductoscope.protocol.devices import FIGURES, Device, FigureSource, Limits, Vendor
from inductoscope.protocol.recording import Recording

_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_TEXTS = ("name", "arch")
_FRACTIONS = ("bandwidth_gbps", "l2_mib", "tensor_tflops", "float32_tflops")
_MAY_BE_ZERO = ("shared_reserved",)
_MOST, _LEAST_FRACTION = 2**31 - 1, 1e-3
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ARCH = {Vendor.NVIDIA: re.compile(r"sm_\d{2,3}"), Vendor.AMD: re.compile(r"gfx[0-9a-f]{3,4}")}


class OwnDeviceError(ValueError):
    """A described GPU cannot be used; the message is the rest of a sentence that begins with where it stands.

    `entry` is the name in the table that is wrong, None for the table as a whole; `within` the name of the table in
    it that the entry stands in, where it does.
    """

    def __init__(self, message: str, entry: str | None = None, within: str | None = None) -> None:
        super().__init__(message)
        self.entry = entry
        self.within = within

    @property
    def ended(self) -> str:
        """The message with a full stop, unless it ends in a question."""
        return str(self) if str(self).endswith("?") else f"{self}."

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to the entry, outermost first; empty for the table as a whole."""
        return tuple(name for name in (self.within, self.entry) if name is not None)


@dataclass(frozen=True)
class OwnDevice:
    """A described GPU; `recording` is what torch decided on the card, where that is known."""

    device: Device
    recording: Recording | None = None

    @property
    def identity(self) -> str:
        """A name that differs where anything of it differs."""
        return hashlib.sha256(json.dumps(codec.to_json(self), sort_keys=True).encode()).hexdigest()


def figures(own: Sequence[OwnDevice]) -> tuple[Device, ...]:
    """The GPUs without their recordings."""
    return tuple(one.device for one in own)


def named(text: str, own: Sequence[OwnDevice]) -> tuple[str, OwnDevice | None]:
    """The canonical spelling of a device, and the described GPU where that is what it names.

    Raises `devices.UnknownDeviceError`.
    """
    choice = devices.parse(text, figures(own))
    found = next((one for one in own if one.device is choice.device), None)
    return choice.text, found


def is_free(key: str) -> bool:
    """Whether a described GPU may be called so."""
    try:
        _check_key(key, ())
    except OwnDeviceError:
        return False
    return True


def read(key: str, table: object, origin: str, known: Sequence[OwnDevice] = ()) -> OwnDevice:
    """The GPU `key` that `table` describes; `origin` names where it stands, `known` are others to be based on.

    Raises `OwnDeviceError`.
    """
    if not isinstance(table, Mapping):
        raise OwnDeviceError(f"the device {key} has to be a table of figures")
    _check_key(key, known)
    allowed = {"base", "source", "sources", "recording", "key", *FIGURES}
    for entry in table:
        if entry not in allowed:
            raise OwnDeviceError(f"{entry} is no figure of a device{_meant(str(entry), allowed)}", str(entry))
    base = _base(table, known)
    found: dict[str, Any] = {name: _figure(name, table[name], base) for name in FIGURES if name in table}
    source = _text("source", table["source"]) if "source" in table else origin
    device = replace(base, key=key, aliases=(), source=source, sources=_sources(table, base, source), **found)
    return OwnDevice(device, _recording(table))


def read_file(path: Path, known: Sequence[OwnDevice] = ()) -> OwnDevice:
    """The GPU in a device file.  Raises `OwnDeviceError` with a whole sentence that names file and line."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # with the mark that editors on Windows put first, or without
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise OwnDeviceError(f"{path}, line {error.lineno}: this is not valid JSON ({error.msg}).") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OwnDeviceError(f"The device file {path} cannot be read: {why.rstrip('.')}.") from None
    except ValueError:  # Python reads no whole number of more than 4300 digits
        raise OwnDeviceError(f"The device file {path} cannot be read: a number in it has too many digits.") from None
    key = table.get("key", path.stem) if isinstance(table, dict) else path.stem
    try:
        return read(_text("key", key), table, str(path), known)
    except OwnDeviceError as error:
        raise OwnDeviceError(f"{_place(path, text, error.path)}: {error.ended}") from None


def nearest(arch: str, vendor: Vendor, name: str, multiprocessors: int) -> Device:
    """The known GPU most like one that is not: of that name, else of that architecture, else of that vendor."""
    try:
        return devices.find(name)
    except devices.UnknownDeviceError:
        pass

    def distance(device: Device) -> tuple[int, int]:
        apart = 0 if device.arch == arch else abs(_generation(device.arch) - _generation(arch)) or 1
        return apart, abs(device.multiprocessors - multiprocessors)

    return min((device for device in devices.DEVICES if device.vendor is vendor), key=distance)


def _generation(arch: str) -> int:
    """The number in an architecture's name, hexadecimal on AMD."""
    digits = arch.removeprefix("sm_").removeprefix("gfx")
    return int(re.sub(r"[^0-9a-f].*", "", digits) or "0", 16)


def to_table(own: OwnDevice) -> dict[str, Any]:
    """The table that `read` makes the same device of: what a device file holds."""
    told = codec.to_json(own.device)
    device = own.device
    base = nearest(device.arch, device.vendor, device.name, device.multiprocessors)
    table: dict[str, Any] = {"key": device.key, "base": base.key}
    table |= {name: told[name] for name in FIGURES}
    table["source"] = own.device.source
    table["sources"] = {one.figure: one.source for one in own.device.sources}
    if own.recording is not None:
        table["recording"] = codec.to_json(own.recording)
    return table


def to_text(own: OwnDevice) -> str:
    """The device file: indented JSON, with one line for each recorded decision."""
    table = to_table(own)
    recording: dict[str, Any] = table.get("recording", {})
    lists: dict[str, list[Any]] = {}
    for name in ("paddings", "choices", "kernels") if recording else ():
        lists[name] = recording[name]
        recording[name] = f"<{name}>"
    text = json.dumps(table, indent=1, ensure_ascii=False)
    for name, items in lists.items():
        lines = ",\n   ".join(json.dumps(item, ensure_ascii=False) for item in items)
        text = text.replace(f'"<{name}>"', f"[\n   {lines}\n  ]" if items else "[]")
    return text + "\n"


def _place(path: Path, text: str, where: tuple[str, ...]) -> str:
    """The file, with the line of the entry that the names in `where` lead to."""
    start = _entry(text, where)
    return f"{path}, line {text.count(chr(10), 0, start) + 1}" if start is not None else str(path)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')


def _entry(text: str, where: tuple[str, ...]) -> int | None:
    """Where the last entry of that path begins in a JSON text, as the last one of a name is what counts."""
    path: list[str | None] = []
    last, start, found = "", 0, None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                path.append(None)
            case "}" | "]":
                path.pop()
            case ":":
                path[-1] = json.loads(last)
                found = start if tuple(path) == where else found
            case text_token:
                last, start = text_token, token.start()
    return found


def _check_key(key: str, known: Sequence[OwnDevice]) -> None:
    if _KEY.fullmatch(key) is None:
        raise OwnDeviceError(f"{key!r} is no name for a device: use letters, digits, '.', '_' and '-'")
    try:
        devices.find(key)
    except devices.UnknownDeviceError:
        if devices.plain(key) in {devices.plain(one.device.key) for one in known}:
            raise OwnDeviceError(f"there are two devices called {key}") from None
        return
    raise OwnDeviceError(f"{key} is a device that Inductoscope knows by itself: choose another name")


def _base(table: Mapping[str, Any], known: Sequence[OwnDevice]) -> Device:
    if "base" not in table:
        raise OwnDeviceError(
            'a device needs `base`, a known GPU whose figures hold where it gives none, such as "H100"'
        )
    try:
        return devices.find(_text("base", table["base"]), figures(known))
    except devices.UnknownDeviceError as error:
        raise OwnDeviceError(f"base has to be a known GPU ({str(error).rstrip('.')})", "base") from None


def _figure(name: str, value: object, base: Device) -> Any:
    if name == "limits":
        return _limits(value, base)
    if name not in _TEXTS:
        return _number(name, value)
    text = _text(name, value)
    if name == "arch" and _ARCH[base.vendor].fullmatch(text) is None:
        example = "sm_90" if base.vendor is Vendor.NVIDIA else "gfx942"
        raise OwnDeviceError(f"arch has to be a name such as {example} for a device based on {base.key}", "arch")
    return text


def _limits(value: object, base: Device) -> Limits:
    if not isinstance(value, Mapping):
        raise OwnDeviceError("limits has to be a table", "limits")
    for entry in value:
        if entry not in _LIMITS:
            raise OwnDeviceError(
                f"{entry} is no limit of a device{_meant(str(entry), set(_LIMITS))}", str(entry), "limits"
            )
    return replace(base.limits, **{str(name): int(_number(name, limit, "limits")) for name, limit in value.items()})


def _number(name: str, value: object, within: str | None = None) -> float | int:
    """A figure; those that count something are whole, and no larger than the driver's own 32 bits."""
    counts = name not in _FRACTIONS
    least = 0 if name in _MAY_BE_ZERO else 1 if counts else _LEAST_FRACTION
    limit = ""
    if isinstance(value, int if counts else (int, float)) and not isinstance(value, bool):
        number: float | int = value
        if least <= number <= _MOST:
            return number
        limit = f", at most {_MOST}" if number > _MOST else f", at least {least:g}" if 0 < number < least else ""
    what = "a whole number" if counts else "a number"
    raise OwnDeviceError(f"{name} has to be {what} {'from 0' if least == 0 else 'above 0'}{limit}", name, within)


def _text(name: str, value: object, within: str | None = None) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise OwnDeviceError(f"{name} has to be a text", name, within)


def _sources(table: Mapping[str, Any], base: Device, source: str) -> tuple[FigureSource, ...]:
    """Where each figure comes from: as told, else `source` for what the table gives, else as for the base."""
    told = table.get("sources", {})
    if not isinstance(told, Mapping):
        raise OwnDeviceError("sources has to be a table of texts", "sources")
    for entry in told:
        if entry not in FIGURES:
            raise OwnDeviceError(
                f"{entry} is no figure of a device{_meant(str(entry), set(FIGURES))}", str(entry), "sources"
            )

    def of(figure: str) -> str:
        if figure in told:
            return _text(figure, told[figure], "sources")
        return source if figure in table else f"{base.key}: {devices.source_of(base, figure)}"

    return tuple(FigureSource(figure, of(figure)) for figure in FIGURES)


def _recording(table: Mapping[str, Any]) -> Recording | None:
    if table.get("recording") is None:
        return None
    try:
        return codec.from_json(Recording, table["recording"])
    except codec.CodecError as error:
        raise OwnDeviceError(
            f"recording is not what `inductoscope devices --record` writes ({error})", "recording"
        ) from None


def _meant(entry: str, known: set[str]) -> str:
    close = difflib.get_close_matches(entry, known, n=1)
    return f"; is {close[0]} meant?" if close else f"; known are {', '.join(sorted(known))}"
