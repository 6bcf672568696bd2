"""What is kept of one program's run, on a card or on a simulated one, and how it is written down.

Kernel texts are hashed: a record is small enough to be stored with the tests.  Knows neither torch nor a device.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_BACKEND_HASH = re.compile(r"'backend_hash': '[0-9A-F]+'")  # a hash of the Triton installation, not of the kernel
_COMMENT = re.compile(r"#.*(Topologically Sorted|Source node|File: |kernel path: |Original path: |AOT ID: ).*")
_MAIN = re.compile(r"compiled_module_main\('[^']*'")  # torch names it after the command line
_FOLDER = re.compile(r"/\S*?/(?=site-packages/|dist-packages/|torchinductor|cache)")
_CALL = re.compile(r"extern_kernels\.\w+|torch\.ops\.[\w.]+(?=\()")
_UNKNOWN = {"registers": None, "spills": None}
_COMMENT_LINE = re.compile(r"(?m)^\s*#.*$")


@dataclass(frozen=True)
class Timed:
    """A kernel in the configuration that won on the card: microseconds, and what a thread or block of it needs."""

    us: float
    config: dict[str, Any]
    registers: int
    spills: int
    shared_bytes: int
    candidates: int
    gigabytes: float | None


@dataclass(frozen=True)
class Assembled:
    """What a kernel needs in one configuration, built without a card."""

    config: dict[str, Any]
    registers: int | None
    spills: int | None
    shared_bytes: int


@dataclass(frozen=True)
class KernelRecord:
    """A generated kernel: its name and the hash of its text."""

    name: str
    sha256: str
    timed: Timed | None = None
    assembled: tuple[Assembled, ...] = ()
    predicted_us: float | None = None
    predicted_range_us: tuple[float, float] | None = None


@dataclass(frozen=True)
class LibraryCall:
    """A call of an operator that a library computes: arguments as `bf16[4, 128]` with strides, and microseconds."""

    op: str
    args: tuple[str, ...]
    us: float | None = None
    predicted_us: float | None = None
    predicted_range_us: tuple[float, float] | None = None


@dataclass(frozen=True)
class ProgramRecord:
    """One program: `error` is what it raised, in one line, `looked` the numbers that the host saw."""

    group: str
    seconds: float
    error: str | None = None
    kernels: tuple[KernelRecord, ...] = ()
    wrappers: tuple[str, ...] = ()
    calls: tuple[tuple[str, ...], ...] = ()
    library: tuple[LibraryCall, ...] = ()
    looked: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Texts:
    """The texts behind the hashes, for looking into a difference."""

    by_hash: dict[str, str] = field(default_factory=dict)

    def keep(self, text: str) -> str:
        """Remember `text` and give its hash."""
        name = hashlib.sha256(text.encode()).hexdigest()
        self.by_hash[name] = text
        return name


def kernel_text(source: str) -> str:
    """A kernel's text without what depends on the machine, and without empty lines around it."""
    return _BACKEND_HASH.sub("'backend_hash': X", source).strip()


def wrapper_text(source: str) -> str:
    """A wrapper without comments on places and without folders."""
    return _FOLDER.sub("", _MAIN.sub("compiled_module_main(X", _COMMENT.sub("", kernel_text(source)))).strip()


def calls_in(wrapper: str) -> tuple[str, ...]:
    """The library calls of a wrapper, in order."""
    return tuple(_CALL.findall(_COMMENT_LINE.sub("", wrapper)))


def write(
    path: Path, made: Mapping[str, Any], programs: Mapping[str, ProgramRecord], texts: Texts | None = None
) -> None:
    """One file for all programs, and beside it the texts where they are wanted."""
    lines = [f"{json.dumps(name)}: {json.dumps(_lean(asdict(one)))}" for name, one in sorted(programs.items())]
    body = ",\n".join(lines)  # a line a program: what changed in one shows as one line
    path.write_text(f'{{"made": {json.dumps(dict(made))}, "programs": {{\n{body}\n}}}}\n', encoding="utf-8")
    if texts is not None:
        path.with_suffix(".texts.json").write_text(json.dumps(texts.by_hash), encoding="utf-8")


def _lean(value: Any) -> Any:
    """Without what is None or empty; times to three digits after the point."""
    if isinstance(value, dict):
        return {key: _lean(one) for key, one in value.items() if one not in (None, (), [])}
    if isinstance(value, list | tuple):
        return [_lean(one) for one in value]
    return round(value, 3) if isinstance(value, float) and abs(value) > 1 else value


def read(paths: Iterable[Path]) -> tuple[dict[str, Any], dict[str, ProgramRecord]]:
    """What was made where, and the programs; shards of one run are read together.  Raises OSError, ValueError."""
    made: dict[str, Any] = {}
    programs: dict[str, ProgramRecord] = {}
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        made = made or content["made"]
        programs.update({name: _program(raw) for name, raw in content["programs"].items()})
    return made, programs


def _program(raw: dict[str, Any]) -> ProgramRecord:
    return ProgramRecord(
        group=raw["group"],
        seconds=raw["seconds"],
        error=raw.get("error"),
        kernels=tuple(_kernel(one) for one in raw.get("kernels", ())),
        wrappers=tuple(raw.get("wrappers", ())),
        calls=tuple(map(tuple, raw.get("calls", ()))),
        library=tuple(_call(one) for one in raw.get("library", ())),
        looked=tuple(raw.get("looked", ())),
        notes=tuple(raw.get("notes", ())),
    )


def _kernel(raw: dict[str, Any]) -> KernelRecord:
    timed = {"gigabytes": None, **raw["timed"]} if "timed" in raw else None
    return KernelRecord(
        name=raw["name"],
        sha256=raw["sha256"],
        timed=Timed(**timed) if timed else None,
        assembled=tuple(Assembled(**{**_UNKNOWN, **one}) for one in raw.get("assembled", ())),
        predicted_us=raw.get("predicted_us"),
        predicted_range_us=_pair(raw.get("predicted_range_us")),
    )


def _call(raw: dict[str, Any]) -> LibraryCall:
    return LibraryCall(
        raw["op"],
        tuple(raw.get("args", ())),
        raw.get("us"),
        raw.get("predicted_us"),
        _pair(raw.get("predicted_range_us")),
    )


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return (values[0], values[1]) if values else None
