"""Inputs of recorded runs become inputs of checks, and say where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol import input_spec
from inductoscope.server import recorded_inputs
from inductoscope.server.targets import InputSource, scan

TEXT = """import torch


class Block(torch.nn.Module):
    def forward(self, x):
        return x


@torch.compile
def scaled(x, factor):
    return x * factor


def plain(x):
    return x


step = torch.compile(plain)
compiled = torch.compile(Block())
"""
AT = 1_700_000_000.0


def tensor(*shape: int, dtype: str = "float32") -> dict[str, Any]:
    described = {"dtype": dtype, "shape": [*shape], "stride": None, "device": "cuda:0", "requires_grad": True}
    return {"tensor": described}


def argument(name: str, value: dict[str, Any], how: str = "positional") -> dict[str, Any]:
    return {"name": name, "how": how, **value}


def told(file: Path, function: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"file": str(file), "line": 4, "function": function, "arguments": [*arguments]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return path


def remembered(file: Path, *calls: dict[str, Any]) -> dict[str, str]:
    where = file.parent / "kept"
    recorded_inputs.remember(calls, "python train.py", AT, where)
    return {one.function: one.comment for one in recorded_inputs.read(str(file), where)}


def test_targets_without_inputs_get_those_of_the_run(file: Path) -> None:
    where = file.parent / "kept"
    calls = [
        told(file, "scaled", argument("x", tensor(4, 8)), argument("factor", {"value": 2.0})),
        told(file, "scaled", argument("x", tensor(6, 8)), argument("factor", {"value": 2.0})),
        told(file, "plain", argument("x", tensor(3, dtype="bfloat16"))),
        told(file, "Block.forward", argument("x", tensor(2, 2))),
    ]
    assert recorded_inputs.remember(calls, "python train.py", AT, where) == 3
    filled = recorded_inputs.fill(scan(TEXT, str(file)), str(file), TEXT, where)
    found = {one.target.name: one for one in filled.targets}
    assert found["scaled"].target.comment == "x=f32[4, 8], factor=2.0; x=f32[6, 8], factor=2.0"
    assert found["step"].target.comment == "x=bf16[3]"
    assert found["compiled"].target.comment == "x=f32[2, 2]"
    assert {one.inputs for one in found.values()} == {InputSource.RECORDED}
    assert str(found["scaled"].target.comment_from).endswith("from python train.py")
    assert [one for one in filled.findings if one.code == "no-inputs"] == []


def test_what_the_file_says_itself_goes_before(file: Path) -> None:
    text = TEXT.replace(
        "@torch.compile\ndef scaled", "# inductoscope: x=f32[1], factor=1.0\n@torch.compile\ndef scaled"
    )
    where = file.parent / "kept"
    recorded_inputs.remember([told(file, "scaled", argument("x", tensor(9)))], "run", AT, where)
    filled = recorded_inputs.fill(scan(text, str(file)), str(file), text, where)
    scaled = next(one.target for one in filled.targets if one.target.name == "scaled")
    assert (scaled.comment, scaled.comment_from) == ("x=f32[1], factor=1.0", None)


def test_nothing_recorded_changes_nothing(file: Path) -> None:
    before = scan(TEXT, str(file))
    assert recorded_inputs.fill(before, str(file), TEXT, file.parent / "kept") == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ""),
        ([argument("x", tensor())], "x=f32[]"),
        ([argument("x", {"list": [tensor(1), tensor(2)]})], "x=[f32[1], f32[2]]"),
        ([argument("x", {"tuple": [tensor(1)]})], "x=(f32[1],)"),
        ([argument("x", {"dict": {"a": tensor(1), "b": {"value": None}}})], "x={'a': f32[1], 'b': None}"),
        ([argument("args", {"tuple": [tensor(1), {"value": 3}]}, "rest")], "f32[1], 3"),
        ([argument("kwargs", {"dict": {"a": tensor(1)}}, "named")], "a=f32[1]"),
        ([argument("mode", {"value": "it's"}), argument("on", {"value": True})], 'mode="it\'s", on=True'),
    ],
)
def test_calls_as_a_comment(file: Path, arguments: list[dict[str, Any]], expected: str) -> None:
    assert remembered(file, told(file, "scaled", *arguments)) == {"scaled": expected}
    if expected:
        assert input_spec.parse(expected)


@pytest.mark.parametrize(
    "argument_of",
    [
        argument("config", {"other": "Config"}),
        argument("x", {"list": [{"other": "Config"}]}),
        argument("x", {"dict": {"a": {"other": "Config"}}}),
        argument("x", tensor(3, dtype="qint8")),
    ],
)
def test_a_call_that_cannot_be_written_is_not_kept(file: Path, argument_of: dict[str, Any]) -> None:
    assert remembered(file, told(file, "scaled", argument_of)) == {}


def test_a_later_run_replaces_its_own_functions_only(file: Path) -> None:
    remembered(file, told(file, "scaled", argument("x", tensor(1))), told(file, "plain", argument("x", tensor(2))))
    assert remembered(file, told(file, "scaled", argument("x", tensor(3)))) == {
        "scaled": "x=f32[3]",
        "plain": "x=f32[2]",
    }


def test_what_was_kept_and_is_damaged_is_as_if_it_were_not(file: Path) -> None:
    remembered(file, told(file, "scaled", argument("x", tensor(1))))
    (kept,) = (file.parent / "kept").iterdir()
    kept.write_text('{"file": 1')
    assert recorded_inputs.read(str(file), file.parent / "kept") == ()
    assert remembered(file, told(file, "scaled", argument("x", tensor(1)))) == {"scaled": "x=f32[1]"}
