"""Inputs of compiled functions in recorded runs, kept for later checks: one small file for each source file.

What is kept are shapes, strides, dtypes and devices of tensors, and plain Python values that Dynamo compiles for; never
what is in a tensor.  A check takes them for targets that nothing else has inputs for, and says where they come from.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs

from inductoscope.protocol import codec
from inductoscope.protocol.input_values import DTYPES, tensor_text
from inductoscope.server.targets import InputSource, Scan, ScannedTarget

logger = logging.getLogger(__name__)

MOST_CALLS = 8
"""Different calls of one function that are kept, the first ones of the latest run."""

SCHEMA = 1


@dataclass(frozen=True)
class Tensor:
    """What a tensor looks like; `stride` is null for those that have none."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    device: str
    requires_grad: bool


@dataclass(frozen=True)
class Recorded:
    """The calls of one function in one run: `calls` in the language of the inputs comment, and where they come from.

    `tensors` are all tensors of the first call, in order: what the comment cannot say of them.
    """

    function: str
    line: int
    calls: tuple[str, ...]
    origin: str
    at: float
    tensors: tuple[Tensor, ...] = ()

    @property
    def comment(self) -> str:
        """All calls as one comment."""
        return "; ".join(self.calls)


@dataclass(frozen=True)
class Store:
    """What is kept of one source file."""

    file: str
    functions: tuple[Recorded, ...]
    schema: int = SCHEMA


def folder() -> Path:
    """Where the files are."""
    return Path(platformdirs.user_cache_dir("inductoscope", appauthor=False)) / "inputs"


def remember(told: Iterable[Mapping[str, Any]], command: str, at: float, where: Path) -> int:
    """Keep the inputs in `inductoscope_inputs` records; returns for how many functions that was possible."""
    origin = f"recorded {time.strftime('%H:%M', time.localtime(at))} from {command}"
    by_file: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for fields in told:
        file, function = fields.get("file"), fields.get("function")
        if isinstance(file, str) and isinstance(function, str) and Path(file).is_absolute():
            by_file.setdefault(os.path.realpath(file), {}).setdefault(function, []).append(fields)
    kept = 0
    for file, functions in by_file.items():
        found = [one for name, calls in functions.items() if (one := _recorded(name, calls, origin, at)) is not None]
        kept += len(found)
        _write(Store(file, _together(read(file, where), found)), where)
    return kept


def read(file: str, where: Path) -> tuple[Recorded, ...]:
    """What is known of the functions of a file; nothing where nothing was recorded."""
    path = _path(file, where)
    try:
        store = codec.from_json(Store, json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        logger.warning("recorded inputs cannot be read: file=%s error=%s", path, error)
        return ()
    return store.functions if store.file == os.path.realpath(file) and store.schema == SCHEMA else ()


def fill(found: Scan, file: str, text: str, where: Path | None = None) -> Scan:
    """The scan with recorded inputs for targets that nothing else has any for."""
    lacking = [one for one in found.targets if one.inputs is None and one.target.comment is None]
    recorded = read(file, where or folder()) if lacking else ()
    if not recorded:
        return found
    filled: dict[str, ScannedTarget] = {}
    for one in lacking:
        calls = find(recorded, one.target.name, one.target.entry, text)
        if calls is not None and calls.comment:
            target = replace(one.target, comment=calls.comment, comment_from=calls.origin)
            filled[one.target.name] = ScannedTarget(target, InputSource.RECORDED)
    return Scan(
        tuple(filled.get(one.target.name, one) for one in found.targets),
        tuple(one for one in found.findings if one.code != "no-inputs" or one.function not in filled),
    )


def find(recorded: Sequence[Recorded], name: str, entry: str, text: str) -> Recorded | None:
    """The calls of a target, by its name (`Block.forward`) or that of what is compiled (`model`)."""
    names = [name, f"{entry}.forward", entry, *_compiled_behind(text, entry)]
    for wanted in names:
        for one in recorded:
            if wanted in (one.function, one.function.replace(".<locals>", "")):
                return one
    return None


def _compiled_behind(text: str, entry: str) -> Iterator[str]:
    """What the module-level name `entry` is a compiled form of: in `step = torch.compile(train)` that is `train`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == entry for one in node.targets):
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call):
                    for name in (call.func, *call.args):
                        if isinstance(name, ast.Name):
                            yield from (name.id, f"{name.id}.forward")


def _recorded(name: str, calls: Sequence[Mapping[str, Any]], origin: str, at: float) -> Recorded | None:
    """None where no call can be written as a comment, such as one with an argument of a class of the program's."""
    texts: dict[str, Mapping[str, Any]] = {}
    for fields in calls:
        text = _call_text(fields.get("arguments"))
        if text is not None:
            texts.setdefault(text, fields)
    if not texts:
        return None
    first = next(iter(texts.values()))
    tensors = tuple(_tensors(first.get("arguments")))
    return Recorded(name, int(first.get("line") or 1), tuple(texts)[:MOST_CALLS], origin, at, tensors)


def _call_text(arguments: Any) -> str | None:
    """A call in the language of the inputs comment, None where it cannot say it."""
    if not isinstance(arguments, list):
        return None
    parts: list[str] = []
    for argument in arguments:
        how, name = argument.get("how"), argument.get("name")
        if how == "rest":
            items = [_value_text(item) for item in argument.get("tuple", ())]
            if any(item is None for item in items) or (items and any("=" in part for part in parts)):
                return None
            parts += [item for item in items if item is not None]
        elif how == "named":
            for key, item in argument.get("dict", {}).items():
                text = _value_text(item)
                if text is None:
                    return None
                parts.append(f"{key}={text}")
        else:
            text = _value_text(argument)
            if text is None:
                return None
            parts.append(f"{name}={text}")
    return ", ".join(parts)


def _value_text(value: Mapping[str, Any]) -> str | None:
    if "tensor" in value:
        dtype, shape = value["tensor"].get("dtype"), value["tensor"].get("shape")
        known = isinstance(dtype, str) and dtype in DTYPES.values() and isinstance(shape, list)
        return tensor_text(dtype, [str(size) for size in shape]) if known else None
    if "value" in value:
        return repr(value["value"])
    for kind, start, end in (("list", "[", "]"), ("tuple", "(", ")")):
        if kind in value:
            items = [_value_text(item) for item in value[kind]]
            if any(item is None for item in items):
                return None
            inside = ", ".join(str(item) for item in items)
            return f"{start}{inside},{end}" if kind == "tuple" and len(items) == 1 else f"{start}{inside}{end}"
    if "dict" in value:
        entries = {key: _value_text(item) for key, item in value["dict"].items()}
        if any(text is None for text in entries.values()):
            return None
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in entries.items()) + "}"
    return None


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, list):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Mapping) and isinstance(fields := value.get("tensor"), Mapping):
        stride = fields.get("stride")
        yield Tensor(
            str(fields.get("dtype")),
            tuple(fields.get("shape") or ()),
            tuple(stride) if isinstance(stride, list) else None,
            str(fields.get("device")),
            bool(fields.get("requires_grad")),
        )
    elif isinstance(value, Mapping):
        yield from (tensor for item in value.values() for tensor in _tensors(item))


def _together(before: Iterable[Recorded], found: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """The latest run's word on each function."""
    return tuple({one.function: one for one in (*before, *found)}.values())


def _write(store: Store, where: Path) -> None:
    path = _path(store.file, where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(codec.to_json(store)), encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        logger.warning("recorded inputs cannot be kept: file=%s error=%s", path, error)


def _path(file: str, where: Path) -> Path:
    return where / f"{hashlib.sha256(os.path.realpath(file).encode()).hexdigest()[:24]}.json"
