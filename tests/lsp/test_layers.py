"""Who may know LSP: the modules that speak it, and the one that puts everything together."""

from __future__ import annotations

import ast
from pathlib import Path

import inductoscope.server.app

SERVER = Path(inductoscope.server.app.__file__).parent
SPEAKERS = {"app.py", "editor.py", "transport.py", "to_lsp.py", "artifacts_to_lsp.py"} | {
    f"{kind}endpoints.py" for kind in ("", "artifact_", "command_")
}


def imported(file: Path) -> set[str]:
    """The top-level packages, and the modules of the server, that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def test_only_the_modules_that_speak_lsp_import_it() -> None:
    files = [file for file in SERVER.rglob("*.py") if file.name not in SPEAKERS]
    assert len(files) > 20
    assert [file.name for file in files if imported(file) & {"lsprotocol", "pygls"}] == []


def test_nothing_but_the_command_line_imports_those_that_speak_lsp() -> None:
    speaking = {f"inductoscope.server.{name.removesuffix('.py')}" for name in SPEAKERS}
    others = [file for file in SERVER.rglob("*.py") if file.name not in SPEAKERS | {"cli.py"}]
    assert [file.name for file in others if imported(file) & speaking] == []
