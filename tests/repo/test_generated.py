"""What is generated from the server's Python is current, and the pages about it are true."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from inductoscope.server import extensions, settings
from inductoscope.server.features.actions import ActionKind
from inductoscope.server.features.commands import CommandName
from inductoscope.server.settings import Effect, Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lsp-extensions.md").read_text(encoding="utf-8")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "vscode-extension" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()


@pytest.mark.parametrize("path", GENERATE.OUTPUTS, ids=lambda path: path.name)
def test_what_is_generated_is_current(path: Path) -> None:
    current = path.read_text(encoding="utf-8") == GENERATE.OUTPUTS[path]()
    assert current, f"{path.relative_to(ROOT)} is out of date: run `python vscode-extension/generate.py`."


def test_no_two_types_have_one_name() -> None:
    names = re.findall(r"^export (?:interface|type) (\w+)", GENERATE.protocol(), re.MULTILINE)
    assert len(names) > 50 and len(names) == len(set(names))


def test_every_name_that_is_used_is_a_type() -> None:
    text = GENERATE.protocol()
    names = set(re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE))
    fields_of = re.findall(r"^  readonly \w+\??: (.*);$", text, re.MULTILINE)
    used = {word for written in fields_of for word in re.findall(r"\b[A-Z]\w+", written)}
    assert used - names == {"Readonly", "Record"}


@pytest.mark.parametrize(
    "method", [value for name, value in vars(extensions).items() if name.isupper() and "/" in str(value)]
)
def test_each_message_has_a_section(method: str) -> None:
    assert f"## `{method}`" in PAGE


@pytest.mark.parametrize("name", [command.value for command in CommandName])
def test_each_command_is_in_the_table(name: str) -> None:
    assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize("kind", [kind.value for kind in ActionKind])
def test_each_kind_of_action_is_named(kind: str) -> None:
    assert f"`{kind}`" in PAGE


def reached(hint: Any, found: set[Any]) -> set[Any]:
    """The dataclasses that a type is made of."""
    if isinstance(hint, type) and is_dataclass(hint) and hint not in found:
        found.add(hint)
        for part in get_type_hints(hint).values():
            reached(part, found)
    for argument in get_args(hint):
        reached(argument, found)
    return found


OWN = [cls for cls in vars(extensions).values() if is_dataclass(cls) and cls.__module__ == extensions.__name__]


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_each_field_is_on_the_page(cls: Any) -> None:
    missing = [field.name for field in fields(cls) if not re.search(rf"[`\"]{field.name}[`\"]", PAGE)]
    assert missing == []


def test_each_class_is_sent_or_received() -> None:
    used: set[Any] = set()
    for cls in (*GENERATE.SENT, *GENERATE.RECEIVED):
        reached(cls, used)
    assert set(OWN) <= used


@pytest.mark.parametrize("key", settings.KEYS, ids=lambda key: key.name)
def test_each_setting_says_what_it_is(key: settings.Key) -> None:
    assert settings.read({key.name: key.default}).settings == Settings()
    assert hasattr(Settings(), key.attribute) and key.meaning.endswith(".")
    for name in key.choices:
        value = [name] if key.schema["type"] == "array" else name
        assert settings.read({key.name: value}).problems == ()


def test_what_a_change_does_is_what_the_page_says() -> None:
    changed = {
        "interpreter": ["python3"],
        "device": "cpu",
        "rung": "capture",
        "probe": "off",
        "run": "manual",
        "timeout": 5,
        "memory": 5,
        "show": ["missed-fusion"],
        "hide": ["recompile"],
        "inlayHints": ["kernels"],
    }
    for key in settings.KEYS:
        other = settings.read({key.name: changed[key.name]}).settings
        assert other != Settings()
        assert Settings().needs_new_workers(other) is (key.effect is Effect.WORKERS)
        assert Settings().needs_new_runs(other) is (key.effect in (Effect.WORKERS, Effect.RUNS))


def test_the_example_on_the_page_is_the_defaults() -> None:
    text = re.search(r"```json\n(.*?)```", GENERATE.page(), re.DOTALL)
    assert text is not None
    assert settings.read(json.loads(text[1])["inductoscope"]) == settings.Read(Settings())
