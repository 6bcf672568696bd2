"""The extension's manifest agrees with the server: version, settings, commands, codes."""

import json
import re
from pathlib import Path

import pytest

from inductoscope.protocol._version import __version__
from inductoscope.protocol.codes import CODES
from inductoscope.server import settings

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "vscode-extension"
MANIFEST = json.loads((EXTENSION / "package.json").read_text())
PROPERTIES = MANIFEST["contributes"]["configuration"]["properties"]
EXTENSIONS_PAGE = (ROOT / "docs" / "lsp-extensions.md").read_text()


def test_one_version_everywhere():
    lock = json.loads((EXTENSION / "package-lock.json").read_text())
    versions = {MANIFEST["version"], lock["version"], lock["packages"][""]["version"]}
    assert versions == {__version__}
    assert f"## {__version__}" in (EXTENSION / "CHANGELOG.md").read_text()


def test_editor_version_is_the_one_whose_api_is_type_checked():
    assert MANIFEST["engines"]["vscode"] == "^" + MANIFEST["devDependencies"]["@types/vscode"] == "^1.91.0"


@pytest.mark.parametrize("name", settings.NAMES)
def test_setting_has_the_server_default(name):
    declared = PROPERTIES[f"inductoscope.{name}"]
    assert settings.read({name: declared["default"]}) == settings.Read(settings.Settings())


def test_choices_are_those_of_the_server():
    for mode in settings.RunMode:
        assert mode.value in PROPERTIES["inductoscope.run"]["enum"]
    assert PROPERTIES["inductoscope.rung"]["enum"] == [rung.value for rung in settings.CHECK_RUNGS]
    assert PROPERTIES["inductoscope.hide"]["items"]["enum"] == list(CODES)
    asked_for = [code.name for code in CODES.values() if not code.shown]
    assert PROPERTIES["inductoscope.show"]["items"]["enum"] == asked_for


def test_every_setting_is_described():
    readme = (EXTENSION / "README.md").read_text()
    for name, declared in PROPERTIES.items():
        assert declared["markdownDescription"] and declared["scope"]
        assert f"`{name}`" in readme


def test_server_commands_are_the_documented_ones():
    source = (EXTENSION / "src" / "protocol.ts").read_text()
    block = re.search(r"SERVER_COMMANDS = \{(.*?)\}", source, re.DOTALL)
    assert block is not None
    used = set(re.findall(r"'(inductoscope\.\w+)'", block.group(1)))
    documented = set(re.findall(r"^\| `(inductoscope\.\w+)` \|", EXTENSIONS_PAGE, re.MULTILINE))
    assert used == documented
    assert not used & {command["command"] for command in MANIFEST["contributes"]["commands"]}


def test_lock_file_names_no_registry():
    hosts = re.findall(r'"resolved": "https?://([^/"]+)', (EXTENSION / "package-lock.json").read_text())
    assert set(hosts) <= {"registry.npmjs.org"}


def test_what_travels_along_is_what_the_package_needs():
    """Every dependency of the package is in the bundle, but for those that hold compiled code or serve the shell."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)^\]", pyproject, re.DOTALL | re.MULTILINE)
    assert block is not None
    needed = set(re.findall(r'^\s+"([a-z0-9-]+)', block.group(1), re.MULTILINE))
    pinned = (EXTENSION / "bundle" / "requirements.txt").read_text()
    bundled = set(re.findall(r"^([a-z0-9-]+)==", pinned, re.MULTILINE))
    assert needed - bundled <= {"watchdog", "rich"}
