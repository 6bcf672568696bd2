"""`[tool.inductoscope]` of the nearest `pyproject.toml`.

    device = "sim:H200"                   what to compile for
    rung = "assemble"                     how far up the ladder
    timeout = 120                         seconds a run may take
    memory = "8GiB"                       what a run and its children may hold
    python = ".venv/bin/python"           the interpreter; relative to this file
    paths = ["src"]                       folders to import from, besides the program's own; relative to this file
    targets = ["pkg/model.py::Model"]     what to compile besides what the files themselves say
    exclude = ["legacy/*"]                files that a check of a folder leaves out; patterns relative to this file
    probe = "off"                         whether other sizes of the inputs are tried after a run: "on" or "off"
    runner = ["ssh", "gpu-box"]           a command that reaches the machine to measure on: benchmarks run there
    runner-python = "python3"             the interpreter on that machine
    device-files = ["gpus/box.json"]      GPUs in files, or folders of them; relative to this file

    [tool.inductoscope.devices.box]       a GPU of one's own, `sim:box`: figures over those of a known one
    base = "H100"
    bandwidth_gbps = 2039

Reads files only.  Whatever is wrong becomes a `ConfigError` whose message names file and line.
"""

from __future__ import annotations

import difflib
import enum
import fnmatch
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.own_devices import OwnDevice, OwnDeviceError
from inductoscope.protocol.report import Rung

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

PROBE_SECONDS = 20.0
"""Enough on a busy machine too; on an idle one most programs take a second or two."""

CHECK_RUNGS = (Rung.CAPTURE, Rung.LOWER, Rung.ASSEMBLE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


class Probing(enum.Enum):
    """Whether other sizes of the inputs are tried after a run."""

    ON = "on"
    OFF = "off"

    @property
    def seconds(self) -> float:
        """Wall time that it may take."""
        return PROBE_SECONDS if self is Probing.ON else 0.0


class ConfigError(ValueError):
    """A setting that cannot be used; the message is a sentence with file and line."""


class _UnfitError(ValueError):
    """A value that does not fit; the message says what would."""


@dataclass(frozen=True)
class Config:
    """The settings of a project; None where it says nothing.  `path` is the file, None where there is none; `files` are
    all files and folders that the settings were read from."""

    path: Path | None = None
    device: str | None = None
    rung: Rung | None = None
    timeout_s: float | None = None
    memory_bytes: int | None = None
    python: str | None = None
    paths: tuple[str, ...] = ()
    targets: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    probe: Probing | None = None
    own: tuple[OwnDevice, ...] = ()
    files: tuple[Path, ...] = field(default=(), compare=False)
    runner: tuple[str, ...] = ()
    runner_python: str | None = None

    def wanted(self, file: Path) -> tuple[str, ...]:
        """The names that `targets` asks for in a file."""
        return self.targets.get(file, ())

    def excludes(self, file: Path) -> bool:
        """Whether `exclude` leaves out a file."""
        if self.path is None or not file.is_relative_to(self.path.parent):
            return False
        relative = file.relative_to(self.path.parent)
        names = [relative.as_posix(), *(parent.as_posix() for parent in relative.parents)]
        return any(fnmatch.fnmatch(name, pattern.rstrip("/")) for name in names for pattern in self.exclude)


def nearest(folder: Path) -> Config:
    """The settings that hold in `folder`.  Raises `ConfigError`."""
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if path.is_file():
            return read(path)
    return Config()


def read(path: Path) -> Config:
    """The settings in one `pyproject.toml`.  Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path} cannot be read: {error}.") from None
    except RecursionError:
        raise ConfigError(f"{path} cannot be read: its values are nested too deeply.") from None
    tool = document.get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: [tool] has to be a table.")
    return _Reader(path, text, tool.get("inductoscope", {})).config()


class _Reader:
    def __init__(self, path: Path, text: str, table: Any) -> None:
        self._path = path
        self._text = text
        self._table = table
        self._files = [path]

    def config(self) -> Config:
        if not isinstance(self._table, dict):
            raise ConfigError(f"{self._path}: [tool.inductoscope] has to be a table.")
        known = {"device", "rung", "timeout", "memory", "python", "paths", "targets", "exclude", "probe"}
        known |= {"devices", "device-files", "runner", "runner-python"}
        for key in self._table:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                meant = f"; is {close[0]} meant?" if close else f"; known are {', '.join(sorted(known))}."
                raise ConfigError(f"{self._where(key)}: {key} is no setting of [tool.inductoscope]{meant}")
        own = self._described(self._get("device-files", self._device_files) or ())
        return Config(
            path=self._path,
            device=self._get("device", lambda value: _device(value, own)),
            rung=self._get("rung", _rung),
            timeout_s=self._get("timeout", _seconds),
            memory_bytes=self._get("memory", _bytes),
            python=self._get("python", self._python),
            paths=self._get("paths", self._paths) or (),
            targets=self._get("targets", self._targets) or {},
            exclude=self._get("exclude", _strings) or (),
            probe=self._get("probe", _probing),
            own=own,
            files=tuple(self._files),
            runner=self._get("runner", _words) or (),
            runner_python=self._get("runner-python", _string),
        )

    def _device_files(self, value: Any) -> tuple[OwnDevice, ...]:
        """The GPUs in files and in the folders that are named."""
        found: list[OwnDevice] = []
        for name in _strings(value):
            path = self._path.parent / name
            if not path.exists():
                raise _UnfitError(f"a list of files, and there is no {path}")
            files = sorted(path.glob("*.json")) if path.is_dir() else [path]
            self._files += dict.fromkeys([path, *files])
            for file in files:
                try:
                    found.append(own_devices.read_file(file, found))
                except OwnDeviceError as error:
                    raise ConfigError(str(error)) from None
        return tuple(found)

    def _described(self, found: tuple[OwnDevice, ...]) -> tuple[OwnDevice, ...]:
        """These GPUs and those of the tables `devices.NAME`."""
        tables = self._table.get("devices", {})
        if not isinstance(tables, dict):
            raise ConfigError(
                f"{self._where('devices')}: devices of [tool.inductoscope] has to hold a table for each GPU."
            )
        for key, table in tables.items():
            try:
                found = (*found, own_devices.read(key, table, str(self._path), found))
            except OwnDeviceError as error:
                raise ConfigError(f"{self._where_in_device(key, error.entry)}: {error.ended}") from None
        return found

    def _where_in_device(self, key: str, entry: str | None) -> str:
        """The line of an entry of a device's table, else that of the table."""
        quoted = rf"[\"']?{re.escape(key)}[\"']?"
        header = rf"^\s*\[\s*tool\s*\.\s*inductoscope\s*\.\s*devices\s*\.\s*{quoted}\s*[\].]"
        dotted = rf"^\s*(devices\s*\.\s*)?{quoted}\s*[=.]"
        ways = (header, dotted, r"^\s*devices\s*=")
        section = next(filter(None, (re.search(way, self._text, re.MULTILINE) for way in ways)), None)
        start = section.start() if section else 0
        end = section.end() if section else None
        if entry is not None:
            found = re.compile(rf"(?<![\w.-])[\"']?{re.escape(entry)}[\"']?\s*=").search(self._text, start)
            end = found.end() if found else end
        return str(self._path) if end is None else f"{self._path}, line {self._text.count(chr(10), 0, end) + 1}"

    def _get(self, key: str, convert: Callable[[Any], T]) -> T | None:
        if key not in self._table:
            return None
        try:
            return convert(self._table[key])
        except _UnfitError as error:
            raise ConfigError(f"{self._where(key)}: {key} of [tool.inductoscope] has to be {error}.") from None

    def _where(self, key: str) -> str:
        section = re.search(r"^\s*\[\s*tool\s*\.\s*inductoscope\s*[\].]", self._text, re.MULTILINE)
        start = section.start() if section else 0
        entry = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*=", re.MULTILINE).search(self._text, start)
        if entry is None:
            return str(self._path)
        line = self._text.count("\n", 0, entry.end()) + 1
        return f"{self._path}, line {line}"

    def _python(self, value: Any) -> str:
        text = _string(value)
        return str(self._path.parent / text) if "/" in text or "\\" in text else text

    def _paths(self, value: Any) -> tuple[str, ...]:
        folders = [self._path.parent / text for text in _strings(value)]
        missing = [folder for folder in folders if not folder.is_dir()]
        if missing:
            raise _UnfitError(f"a list of folders, and there is no folder {missing[0]}")
        return tuple(map(str, folders))

    def _targets(self, value: Any) -> dict[Path, tuple[str, ...]]:
        found: dict[Path, tuple[str, ...]] = {}
        for item in _strings(value):
            file, separator, name = item.partition("::")
            if not separator or not file or not name:
                raise _UnfitError(f'a list of "FILE::NAME", and "{item}" is none')
            path = (self._path.parent / file).resolve()
            if not path.is_file():
                raise _UnfitError(f'a list of "FILE::NAME", and there is no file {file}')
            found[path] = (*found.get(path, ()), name)
        return found


def parse_bytes(text: str) -> int:
    """The number of bytes in `8GiB`, `500 MB` or `1000000`.  Raises `ValueError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?)?B?\s*", text.upper())
    if match is None or (count := int(float(match[1]) * _UNITS[match[2] or ""])) <= 0:
        raise ValueError(f"{text!r} is no amount of memory such as 8GiB or 500MB")
    return count


def _string(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _UnfitError("a text")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _UnfitError("a list of texts")
    return tuple(value)


def _words(value: Any) -> tuple[str, ...]:
    found = _strings(value)
    if not found or not all(found):
        raise _UnfitError('a list of words such as ["ssh", "gpu-box"]')
    return found


def _device(value: Any, own: tuple[OwnDevice, ...]) -> str:
    try:
        return own_devices.named(_string(value), own)[0]
    except devices.UnknownDeviceError as error:
        raise _UnfitError(f"a device ({str(error).rstrip('.')})") from None


def _probing(value: Any) -> Probing:
    try:
        return Probing(value)
    except ValueError:
        raise _UnfitError('"on" or "off"') from None


def _rung(value: Any) -> Rung:
    for rung in CHECK_RUNGS:
        if rung.value == value:
            return rung
    raise _UnfitError(f"one of {', '.join(rung.value for rung in CHECK_RUNGS)}")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise _UnfitError("a number of seconds above 0")
    return float(value)


def _bytes(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _UnfitError("an amount of memory such as 8GiB")
    try:
        return parse_bytes(str(value))
    except ValueError as error:
        raise _UnfitError(f"an amount of memory ({error})") from None
