"""One conversation with each kind of client: whatever it can take works, and nothing else is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol.report import (
    Finding,
    Graph,
    Kernel,
    KernelLanguage,
    LineMapping,
    Phase,
    Place,
    Predicted,
    Related,
    Rung,
    Severity,
    Status,
    TargetReport,
    ValueFact,
)
from inductoscope.server.workers.run import RunRequest
from support.fixture import parse
from support.strict_client import StrictClient, claims, strict_client

FOLDER = Path(__file__).parents[1] / "support" / "capabilities"
PROFILES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
PROFILES["nothing"] = {}
PROFILES["a hover without Markdown"] = {"textDocument": {"hover": {"contentFormat": ["plaintext"]}}}
PROFILES["every encoding but UTF-16"] = {"general": {"positionEncodings": ["utf-32", "utf-8"]}}
EVERY = pytest.mark.parametrize("profile", PROFILES)

MODEL = parse("""
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):  # <forward>
            y = torch.relu(x)  # <relu> 😀é
            return y.sum()  # <sum>


    def get_inputs():
        return [torch.ones(4, 8)]
""")
SOURCE = "@triton.jit\ndef kernel(x):\n    y = max(x, 0)\n"


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))


def report(request: RunRequest) -> TargetReport:
    """A kernel and a shape on the line of relu, and a finding that ends behind its last character."""
    file, relu = request.target.file, MODEL["relu"]
    line = MODEL.source.split("\n")[relu - 1]
    finding = Finding(
        "graph-break",
        Severity.WARNING,
        file,
        relu,
        8,
        relu,
        len(line),
        "It breaks.",
        Rung.CAPTURE,
        id="GB1",
        related=(Related(file, MODEL["forward"], "called from here"),),
    )
    kernel = Kernel(
        "triton_poi_0",
        KernelLanguage.TRITON,
        Phase.FORWARD,
        "0/0",
        SOURCE,
        (Place(file, relu),),
        line_map=(LineMapping(3, file, relu),),
        predicted=Predicted(1.9, "memory", "roofline"),
    )
    return TargetReport(
        file,
        request.target.name,
        request.target.line,
        request.device,
        request.rung,
        Status.COMPILED,
        graphs=(Graph("0/0", "forward", file, MODEL["forward"], 2),),
        kernels=(kernel,),
        values=(ValueFact(file, relu, "relu", "f32[4, 8]", "0/0", "cuda:0", "y"),),
        findings=(finding,),
    )


class Talk:
    """What a person does in an editor with this model open."""

    def __init__(self, client: StrictClient, folder: Path) -> None:
        self.client = client
        self.uri = (folder / "model.py").as_uri()
        self.document = {"uri": self.uri}
        self.version = 1

    async def open(self) -> None:
        Path(self.uri.removeprefix("file://")).write_text(MODEL.source)
        item = {**self.document, "languageId": "python", "version": 1, "text": MODEL.source}
        self.client.notify("textDocument/didOpen", {"textDocument": item})
        await self.settled()

    async def edit(self, text: str) -> None:
        self.version += 1
        document = {**self.document, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        Path(self.uri.removeprefix("file://")).write_text(text)
        self.client.notify("textDocument/didSave", {"textDocument": self.document})
        await self.settled()

    async def settled(self) -> Any:
        return await self.client.request("inductoscope/sync", {"uri": self.uri, "version": self.version})

    async def on_line(self, method: str, line: int, **more: Any) -> Any:
        position = {"line": line - 1, "character": 8}
        return await self.client.request(method, {"textDocument": self.document, "position": position, **more})

    async def in_all(self, method: str, uri: str | None = None, **more: Any) -> Any:
        return await self.client.request(method, {"textDocument": {"uri": uri or self.uri}, **more})

    def read_everything(self) -> None:
        """What a client reads without being asked anything."""
        for method in (
            "textDocument/publishDiagnostics",
            "client/registerCapability",
            "workspace/configuration",
            "workspace/codeLens/refresh",
            "workspace/inlayHint/refresh",
            "workspace/textDocumentContent/refresh",
            "window/workDoneProgress/create",
            "$/progress",
        ):
            self.client.take(method)


WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}


@EVERY
async def test_what_is_announced_is_what_the_client_can_use(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, answer):
        said = answer["capabilities"]
        await client.request("inductoscope/explore", {"uri": tmp_path.as_uri()})  # what was sent before is here then
        (registered,) = client.take("client/registerCapability") or [{"registrations": []}]
        methods = {one["method"] for one in registered["registrations"]}
        content = claims(said, "workspace.textDocumentContent") or "workspace/textDocumentContent" in methods
        assert content is claims(capabilities, "workspace.textDocumentContent")
        for method, name in {
            "textDocument/definition": "definitionProvider",
            "textDocument/documentSymbol": "documentSymbolProvider",
            "textDocument/foldingRange": "foldingRangeProvider",
            "textDocument/documentLink": "documentLinkProvider",
            "textDocument/semanticTokens": "semanticTokensProvider",
        }.items():
            assert claims(said, name) is not (method in methods), "announced once, one way or the other"
        for one in registered["registrations"]:
            if one["method"].startswith("textDocument/"):
                assert one["registerOptions"]["documentSelector"] == [{"scheme": "inductoscope-artifact"}]
        assert said["hoverProvider"] and said["codeLensProvider"]["resolveProvider"]
        client.take("workspace/configuration")


@EVERY
async def test_diagnostics(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, answer):
        talk = Talk(client, tmp_path)
        await talk.open()
        published = client.take("textDocument/publishDiagnostics")[-1]
        (found,) = published["diagnostics"]
        line = MODEL.source.split("\n")[MODEL["relu"] - 1]
        units = UNITS[answer["capabilities"].get("positionEncoding", "utf-16")]
        assert found["range"]["start"] == {"line": MODEL["relu"] - 1, "character": 8}
        assert found["range"]["end"] == {"line": MODEL["relu"] - 1, "character": units(line)}
        assert ("relatedInformation" in found) is claims(
            capabilities, "textDocument.publishDiagnostics.relatedInformation"
        )
        assert found["data"]["target"] == "Model.forward"
        own_page = "inductoscope-artifact:///diagnostics/graph-break.md"
        described = found.get("codeDescription", {}).get("href")
        assert described == (own_page if claims(capabilities, "workspace.textDocumentContent") else None)
        if described is not None:
            page = await client.request("workspace/textDocumentContent", {"uri": described})
            assert page["text"].startswith("# `graph-break`")
        talk.read_everything()


@EVERY
async def test_what_is_asked_for_is_answered_in_the_client_s_form(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        hover = await talk.on_line("textDocument/hover", MODEL["relu"])
        formats = capabilities.get("textDocument", {}).get("hover", {}).get("contentFormat", [])
        assert hover["contents"]["kind"] == ("markdown" if "markdown" in formats else "plaintext")
        lenses = await talk.in_all("textDocument/codeLens")
        resolved = [lens if "command" in lens else await client.request("codeLens/resolve", lens) for lens in lenses]
        assert any("command" not in lens for lens in lenses) is claims(
            capabilities, "textDocument.codeLens.resolveSupport"
        )
        assert [lens["command"]["title"] for lens in resolved][1:] == [
            "Benchmark compiled vs eager",
            "Kernels",
            "Guards",
            "Timeline",
        ]
        (hint,) = await talk.in_all("textDocument/inlayHint", range=WHOLE)
        whole = await client.request("inlayHint/resolve", hint)
        assert whole["tooltip"] == "f32[4, 8] in Model.forward, H200 (simulated)"
        properties = capabilities.get("textDocument", {}).get("inlayHint", {}).get("resolveSupport", {})
        needs_it_all = not {"tooltip", "label.location"} <= set(properties.get("properties", []))
        assert ("tooltip" in hint) is needs_it_all
        actions = await talk.in_all("textDocument/codeAction", range=WHOLE, context={"diagnostics": []})
        assert bool(actions) is claims(capabilities, "textDocument.codeAction.codeActionLiteralSupport")
        if not claims(capabilities, "textDocument.codeAction.disabledSupport"):
            assert not any("disabled" in action for action in actions)
        talk.read_everything()


@EVERY
async def test_documents_can_be_read_by_whoever_asks(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        argument = {"uri": talk.uri, "target": "Model.forward", "document": "triton_poi_0.py"}
        command = {"command": "inductoscope.showDocument", "arguments": [argument]}
        uri = await client.request("workspace/executeCommand", command)
        assert uri.startswith("inductoscope-artifact:") is claims(capabilities, "workspace.textDocumentContent")
        shown = [params["uri"] for params in client.take("window/showDocument")]
        told = [params["message"] for params in client.take("window/showMessage")]
        if claims(capabilities, "window.showDocument.support"):
            assert (shown, told) == ([uri], [])
        else:
            assert shown == [] and [uri in message for message in told] == [True]
        if uri.startswith("inductoscope-artifact:"):
            assert (await client.request("workspace/textDocumentContent", {"uri": uri}))["text"] == SOURCE
        symbols = await talk.in_all("textDocument/documentSymbol", uri)
        is_nested = claims(capabilities, "textDocument.documentSymbol.hierarchicalDocumentSymbolSupport")
        assert [one["name"] for one in symbols] == ["kernel"] and ("selectionRange" in symbols[0]) is is_nested
        assert await talk.in_all("textDocument/foldingRange", uri) == [{"startLine": 1, "endLine": 2}]
        found = await talk.in_all("textDocument/definition", uri, position={"line": 2, "character": 4})
        assert [(one["uri"], one["range"]["start"]["line"]) for one in found] == [(talk.uri, MODEL["relu"] - 1)]
        report_uri = uri.replace("triton_poi_0.py", "report.md")
        if uri.startswith("inductoscope-artifact:"):
            links = await talk.in_all("textDocument/documentLink", report_uri)
            assert {link["target"] for link in links} >= {uri, f"{talk.uri}#L{MODEL['relu']}"}
        talk.read_everything()


@EVERY
async def test_nothing_is_answered_about_the_program_s_own_files(tmp_path: Path, profile: str) -> None:
    async with strict_client(tmp_path, PROFILES[profile], report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        for method in ("documentSymbol", "foldingRange", "documentLink", "semanticTokens/full"):
            assert await talk.in_all(f"textDocument/{method}") is None
        assert await talk.on_line("textDocument/definition", MODEL["relu"]) is None
        talk.read_everything()


@EVERY
async def test_what_changed_is_told_to_those_who_can_hear_it(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        has_content = claims(capabilities, "workspace.textDocumentContent")
        uri = f"inductoscope-artifact://{talk.uri.removeprefix('file://')}/Model.forward/report.md"
        await client.request("workspace/textDocumentContent", {"uri": uri})
        talk.read_everything()
        await talk.edit(MODEL.source.replace("y.sum()", "y.mean()"))
        assert bool(client.take("workspace/codeLens/refresh")) is claims(
            capabilities, "workspace.codeLens.refreshSupport"
        )
        assert {params["uri"] for params in client.take("workspace/textDocumentContent/refresh")} == (
            {uri} if has_content else set()
        )
        talk.read_everything()


@EVERY
async def test_settings_reach_the_server_by_whichever_way_the_client_has(tmp_path: Path, profile: str) -> None:
    capabilities = PROFILES[profile]
    async with strict_client(tmp_path, capabilities, report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        talk.read_everything()
        client.notify("workspace/didChangeConfiguration", {"settings": {"inductoscope": {"hide": ["graph-break"]}}})
        if claims(capabilities, "workspace.configuration"):
            asked = await client.next("workspace/configuration")
            assert [item["section"] for item in asked["items"]] == ["inductoscope"] * 2
        else:
            assert (await client.next("textDocument/publishDiagnostics"))["diagnostics"] == []
        talk.read_everything()


@EVERY
async def test_status_is_sent_only_to_those_who_want_it(tmp_path: Path, profile: str) -> None:
    async with strict_client(tmp_path, PROFILES[profile], report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        assert client.take("inductoscope/status") == [] and client.violations == []
        explored = await client.request("inductoscope/explore", {"uri": talk.uri})
        assert explored["state"] == "ready"
        assert [node["kind"] for node in explored["targets"][0]["nodes"]] == ["graph", "page", "page", "page"]
        talk.read_everything()


async def test_what_was_pushed_outlives_a_change_of_folders(tmp_path: Path) -> None:
    async with strict_client(tmp_path, {}, report) as (client, _):
        talk = Talk(client, tmp_path)
        await talk.open()
        client.notify("workspace/didChangeConfiguration", {"settings": {"hide": ["graph-break"]}})
        client.take("textDocument/publishDiagnostics")
        assert (await client.next("textDocument/publishDiagnostics"))["diagnostics"] == []
        added = {"uri": (tmp_path / "other").as_uri(), "name": "other"}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [added], "removed": []}})
        await talk.edit(MODEL.source.replace("y.sum()", "y.mean()"))
        assert [params["diagnostics"] for params in client.take("textDocument/publishDiagnostics")] == []
        client.notify("workspace/didChangeConfiguration", {"settings": {}})
        assert len((await client.next("textDocument/publishDiagnostics"))["diagnostics"]) == 1


async def test_each_folder_has_settings_of_its_own(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("one", "two")}
    for folder in folders.values():
        folder.mkdir()
    devices = {folders["one"].as_uri(): "cpu", folders["two"].as_uri(): "sim:A100", None: "sim:H200"}

    def settings(params: Any) -> Any:
        return [{"device": devices[item.get("scopeUri")]} for item in params["items"]]

    capabilities = {"workspace": {"configuration": True, "workspaceFolders": True}}
    answers = {"workspace/configuration": settings}
    async with strict_client(folders["one"], capabilities, report, answers) as (client, _):
        await client.next("workspace/configuration")
        added = {"uri": folders["two"].as_uri(), "name": "two"}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [added], "removed": []}})
        asked = await client.next("workspace/configuration")
        assert [item.get("scopeUri") for item in asked["items"]] == [
            None,
            *(path.as_uri() for path in folders.values()),
        ]
        seen = []
        for folder in folders.values():
            talk = Talk(client, folder)
            await talk.open()
            explored = await client.request("inductoscope/explore", {"uri": talk.uri})
            seen.append(explored["targets"][0]["report"]["device"])
        assert seen == ["cpu", "sim:A100"]
        talk.read_everything()
