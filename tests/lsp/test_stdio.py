"""The server as a process, spoken to over its standard streams as editors do."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import psutil
import pytest
from lsprotocol import types

from inductoscope.protocol.report import Finding, Rung, Severity
from support import fake_interpreter
from support.fake_worker import Script
from support.fixture import parse
from support.lsp import TIMEOUT_S, Profile, editor
from support.raw_client import raw_server

MODEL = parse("""
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):  # <forward>
            y = torch.relu(x)  # <relu> 😀
            print("hi")  # <print>
            return y.sum()  # <sum>


    def get_inputs():
        return [torch.ones(4, 8)]
""")
WITHOUT_INPUTS = parse("""
    import torch


    @torch.compile  # <decorator>
    def attend(x, mask):  # <def>
        return x * mask
""")
EVERY_EDITOR = pytest.mark.parametrize("profile", list(Profile), ids=lambda profile: profile.name)


def break_at_print(folder: Path) -> Finding:
    file, line = str(folder / "model.py"), MODEL["print"]
    return Finding(
        "graph-break",
        Severity.WARNING,
        file,
        line,
        8,
        line,
        19,
        "print breaks the graph",
        Rung.CAPTURE,
        id="GB0059",
        link="https://example.org/GB0059",
    )


def kernel_report(folder: Path) -> dict[str, object]:
    """What the fake worker knows of the line of `relu`."""
    file, line = str(folder / "model.py"), MODEL["relu"]
    place = {"file": file, "line": line}
    kernel = {
        "name": "triton_poi_fused_relu_0",
        "language": "triton",
        "phase": "forward",
        "graph": "0/0",
        "source": "import triton\n\ndef kernel(x):\n    y = max(x, 0)\n",
        "lines": [place],
        "line_map": [{"kernel_line": 4, "file": file, "line": line}],
    }
    graph = {"id": "0/0", "function": "forward", "file": file, "line": MODEL["forward"], "ops": 2}
    return {"kernels": [kernel], "graphs": [graph]}


def settings(script: Script, folder: Path) -> dict[str, object]:
    return {"interpreter": fake_interpreter.settings(script, folder), "device": "sim:H200"}


def checking(folder: Path) -> Script:
    finding = break_at_print(folder)
    return Script().hello().take_run().finding(finding).done(**kernel_report(folder))


@EVERY_EDITOR
async def test_opening_a_model_shows_what_the_worker_found(tmp_path: Path, profile: Profile) -> None:
    script = Script().hello().take_run().finding(break_at_print(tmp_path)).signal("SIGSEGV")
    async with editor(tmp_path, profile, settings(script, tmp_path)) as e:
        e.open("model.py", MODEL.source)
        answer = await e.sync("model.py")
        assert [(target.name, target.status) for target in answer.targets] == [("Model.forward", "failed")]
        found = {item.code: item for item in e.diagnostics("model.py")}
        assert set(found) == {"graph-break", "worker-crash"}
        broken = found["graph-break"]
        assert broken.range.start == types.Position(MODEL["print"] - 1, 8)
        assert broken.severity is types.DiagnosticSeverity.Warning
        assert broken.message == "print breaks the graph (GB0059)"
        assert broken.code_description is not None and broken.code_description.href == "https://example.org/GB0059"
        assert found["worker-crash"].severity is types.DiagnosticSeverity.Error


@EVERY_EDITOR
async def test_hover_and_lens_of_a_checked_model(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile, settings(checking(tmp_path), tmp_path)) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        text = await e.hover("model.py", MODEL["relu"])
        assert text is not None
        assert "```python\nimport triton\n\ndef kernel(x):\n    y = max(x, 0)  # <- line 7\n```" in text
        assert "H200 (simulated)" in text
        assert await e.hover("model.py", MODEL["sum"]) is None
        titles = [lens.command.title for lens in await e.lenses("model.py") if lens.command]
        assert titles == [
            "H200 (simulated): 1 graph, 2 ops in 1 kernel, 0 breaks",
            "Benchmark compiled vs eager",
            "Kernels",
            "Guards",
            "Timeline",
        ]


@pytest.mark.parametrize(("profile", "units"), [(Profile.VSCODE, 2), (Profile.NEOVIM, 4), (Profile.OLD_NEOVIM, 2)])
async def test_columns_are_in_the_unit_of_the_client(tmp_path: Path, profile: Profile, units: int) -> None:
    # The line of relu ends in a character outside of the basic plane: two UTF-16 units, four UTF-8 bytes.
    line = MODEL.source.split("\n")[MODEL["relu"] - 1]
    number, file = MODEL["relu"], str(tmp_path / "model.py")
    finding = Finding("graph-break", Severity.WARNING, file, number, 8, number, len(line), "all", Rung.CAPTURE)
    async with editor(tmp_path, profile, settings(Script().hello().take_run().finding(finding).hang(), tmp_path)) as e:
        e.open("model.py", MODEL.source)
        await e.client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        (shown,) = e.diagnostics("model.py")
        assert (shown.range.start.character, shown.range.end.character) == (8, len(line) - 1 + units)


@EVERY_EDITOR
async def test_a_target_without_inputs_gets_a_comment_by_a_quick_fix(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile, settings(Script(), tmp_path)) as e:
        e.open("model.py", WITHOUT_INPUTS.source)
        await e.sync("model.py")
        assert [item.code for item in e.diagnostics("model.py")] == ["no-inputs"]
        (fix,) = await e.actions("model.py", WITHOUT_INPUTS["def"], only=["quickfix"])
        assert fix.edit is not None and fix.edit.changes is not None
        ((edit,),) = fix.edit.changes.values()
        assert edit.range.start == types.Position(WITHOUT_INPUTS["decorator"] - 1, 0)
        assert edit.new_text.startswith("# inductoscope: ") and "mask" in edit.new_text


async def test_what_is_impossible_is_disabled_with_a_reason(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, settings(Script(), tmp_path)) as e:
        e.open("model.py", WITHOUT_INPUTS.source)
        await e.sync("model.py")
        actions = await e.actions("model.py", WITHOUT_INPUTS["def"], only=["source"])
        reasons = {action.kind: action.disabled.reason for action in actions if action.disabled}
        assert set(reasons) == {
            "source.inductoscope.check",
            "source.inductoscope.benchmark",
            "source.inductoscope.showKernels",
            "source.inductoscope.showGuards",
            "source.inductoscope.showTimeline",
        }
        assert "No example inputs" in reasons["source.inductoscope.benchmark"]


async def test_an_old_client_is_not_offered_what_it_could_not_do(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.OLD_NEOVIM, settings(Script(), tmp_path)) as e:
        e.open("model.py", WITHOUT_INPUTS.source)
        await e.sync("model.py")
        assert await e.actions("model.py", WITHOUT_INPUTS["def"], only=["source"]) == []


async def test_kernels_can_be_read_as_a_document(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, settings(checking(tmp_path), tmp_path)) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        uri = await e.command("inductoscope.showKernels", {"uri": e.uri("model.py"), "target": "Model.forward"})
        content = await e.request(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, types.TextDocumentContentParams(uri))
        assert "triton_poi_fused_relu_0" in content.text.replace("\\", "")
        assert [shown.uri for shown in e.client.shown_documents] == [uri]
        assert e.refreshed == []
        await e.command("inductoscope.check", {"uri": e.uri("model.py")})
        await e.sync("model.py")
        await e.request(types.TEXT_DOCUMENT_HOVER, types.HoverParams(e.document("model.py"), types.Position(0, 0)))
        assert set(e.refreshed) == {uri}


async def test_a_kernel_s_source_leads_back_to_the_model(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, settings(checking(tmp_path), tmp_path)) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        explored = await e.request("inductoscope/explore", {"uri": e.uri("model.py")})
        (document,) = explored.targets[0].documents
        assert document.stage is None
        lines = await e.request("inductoscope/lines", {"uri": document.uri})
        assert [[place.line for place in places] for places in lines.model] == [[MODEL["relu"]]]
        params = types.DefinitionParams(types.TextDocumentIdentifier(document.uri), types.Position(3, 0))
        (found,) = await e.request(types.TEXT_DOCUMENT_DEFINITION, params)
        assert (found.uri, found.range.start.line) == (e.uri("model.py"), MODEL["relu"] - 1)
        elsewhere = types.DefinitionParams(e.document("model.py"), types.Position(MODEL["relu"] - 1, 8))
        assert await e.request(types.TEXT_DOCUMENT_DEFINITION, elsewhere) is None


@pytest.mark.parametrize(("profile", "shown"), [(Profile.NEOVIM, 1), (Profile.OLD_NEOVIM, 0)])
async def test_clients_that_cannot_ask_for_documents_get_a_file(tmp_path: Path, profile: Profile, shown: int) -> None:
    async with editor(tmp_path, profile, settings(checking(tmp_path), tmp_path)) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        uri = await e.command("inductoscope.showKernels", {"uri": e.uri("model.py"), "target": "Model.forward"})
        assert "triton_poi_fused_relu_0" in Path(uri.removeprefix("file://")).read_text().replace("\\", "")
        assert len(e.client.shown_documents) == shown
        assert [uri in message.message for message in e.client.messages] == [True] * (1 - shown)


async def test_an_untrusted_workspace_is_only_read(tmp_path: Path) -> None:
    script = Script().hello().take_run().done()
    async with editor(tmp_path, Profile.VSCODE, settings(script, tmp_path), trusted=False, status=True) as e:
        e.open("model.py", MODEL.source)
        answer = await e.sync("model.py")
        assert [target.status for target in answer.targets] == [None]
        assert e.statuses[-1].trusted is False
        e.client.protocol.notify("inductoscope/trust", {"trusted": True})
        answer = await e.sync("model.py")
        assert [target.status for target in answer.targets] == ["compiled"]
        assert e.statuses[-1].torch == "2.13.0" and e.statuses[-1].quiescent is True


async def test_settings_that_do_not_fit_are_told_once_and_the_rest_is_used(tmp_path: Path) -> None:
    chosen = {**settings(checking(tmp_path), tmp_path), "device": "sim:ABACUS", "run": "manual"}
    async with editor(tmp_path, Profile.VSCODE, chosen) as e:
        e.open("model.py", MODEL.source)
        answer = await e.sync("model.py")
        assert [target.status for target in answer.targets] == [None]
        (message,) = [shown.message for shown in e.client.messages]
        assert "inductoscope.device" in message and "ABACUS" in message
        await e.command("inductoscope.check", {"uri": e.uri("model.py")})
        answer = await e.sync("model.py")
        assert [target.status for target in answer.targets] == ["compiled"]


async def test_checking_what_cannot_be_checked_says_why(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, settings(Script(), tmp_path)) as e:
        await e.command("inductoscope.check")
        e.open("model.py", WITHOUT_INPUTS.source)
        await e.command("inductoscope.check", {"uri": e.uri("model.py"), "target": "attend"})
        await e.command("inductoscope.benchmark", {"uri": e.uri("model.py"), "target": "nobody"})
        first, second, third = [shown.message for shown in e.client.messages]
        assert "no target" in first and "No example inputs are known for attend" in second and "nobody" in third


async def test_an_interpreter_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "no-python")
    async with editor(tmp_path, Profile.VSCODE, {"interpreter": [missing]}, status=True) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        (lens, _) = await e.lenses("model.py")
        assert lens.command is not None and "no-python" in lens.command.title
        assert e.statuses[-1].health == "error" and missing in e.statuses[-1].message


async def test_slow_work_shows_progress_that_ends(tmp_path: Path) -> None:
    script = Script().hello().take_run().progress("lowering").hang()
    async with editor(tmp_path, Profile.VSCODE, settings(script, tmp_path)) as e:
        e.open("model.py", MODEL.source)
        begun = await e.client.wait_for_notification(types.PROGRESS)
        assert begun.value["title"] == "Checking Model.forward" and begun.value["cancellable"] is True
        e.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(begun.token))
        answer = await e.sync("model.py")
        assert [target.status for target in answer.targets] == [None]
        assert e.client.progress_reports[begun.token][-1].kind == "end"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/hover", {"position": "nowhere"}, -32602),
        ("inductoscope/sync", None, -32602),
        ("inductoscope/sync", {"uri": "untitled:one"}, -32602),
        ("inductoscope/nothing", {}, -32601),
        ("workspace/executeCommand", {"command": "inductoscope.nothing"}, -32602),
        ("workspace/textDocumentContent", {"uri": "file:///etc/passwd"}, -32602),
    ],
)
async def test_a_request_that_does_not_fit_is_answered_with_an_error(
    tmp_path: Path, method: str, params: object, code: int
) -> None:
    async with raw_server(tmp_path) as server:
        answer = await server.request(method, params)
        assert answer["error"]["code"] == code
        assert "data" not in answer["error"], "no traceback leaves the server"


async def test_nothing_but_initialize_is_answered_first() -> None:
    async with raw_server(None) as server:
        assert (await server.request("textDocument/hover", {}))["error"]["code"] == -32002


async def test_nothing_is_answered_after_shutdown_and_exit_tells_how_it_went(tmp_path: Path) -> None:
    async with raw_server(tmp_path) as server:
        assert (await server.request("shutdown", None))["result"] is None
        assert (await server.request("textDocument/hover", {}))["error"]["code"] == -32600
        assert await server.exit() == 0


async def test_exit_without_shutdown_is_an_error(tmp_path: Path) -> None:
    async with raw_server(tmp_path) as server:
        assert await server.exit() == 1


async def test_the_server_ends_with_its_input(tmp_path: Path) -> None:
    async with raw_server(tmp_path) as server:
        assert await server.end_input() == 1


async def test_a_worker_ends_with_the_server(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = Script().hello().take_run().write_pid(pid_file).finding(break_at_print(tmp_path)).hang()
    async with raw_server(tmp_path, {"settings": settings(script, tmp_path)}) as server:
        item = {"uri": (tmp_path / "model.py").as_uri(), "languageId": "python", "version": 1, "text": MODEL.source}
        await server.notify("textDocument/didOpen", {"textDocument": item})
        await server.told("textDocument/publishDiagnostics")
        assert psutil.pid_exists(int(pid_file.read_text()))
        await server.end_input()
        with contextlib.suppress(psutil.NoSuchProcess):
            assert psutil.Process(int(pid_file.read_text())).status() == psutil.STATUS_ZOMBIE


async def test_large_answers_arrive_whole_while_others_are_sent(tmp_path: Path) -> None:
    async with raw_server(tmp_path) as server:
        unknown = "inductoscope/" + "x" * 100_000
        answers = await asyncio.gather(*(server.request(unknown, {}) for _ in range(20)))
        assert all(unknown in answer["error"]["message"] for answer in answers)


async def test_a_key_of_the_envelope_inside_parameters_means_nothing(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, settings(Script(), tmp_path)) as e:
        e.open("model.py", "x = 1\n")
        answer = await e.request("inductoscope/sync", {"uri": e.uri("model.py"), "more": {"jsonrpc": "2.0", "id": 1}})
        assert answer.version == 1


async def test_starting_imports_no_torch(tmp_path: Path) -> None:
    async with editor(tmp_path, Profile.VSCODE, {"run": "manual"}) as e:
        e.open("model.py", MODEL.source)
        await e.sync("model.py")
        server = e.client._server
        assert server is not None and sys.platform == "linux"
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        assert "libtorch" not in maps


@EVERY_EDITOR
async def test_a_dependency_that_changes_outside_is_checked_again(tmp_path: Path, profile: Profile) -> None:
    """By the client's watchers where it has them, by the server's own elsewhere."""
    (tmp_path / "lib.py").write_text("x = 1\n")
    script = Script().hello().take_run().report_environment()
    async with editor(tmp_path, profile, settings(script, tmp_path)) as e:
        e.open("model.py", "import lib\n" + MODEL.source)
        await e.sync("model.py")

        async def who_checked() -> str:
            explored = await e.request("inductoscope/explore", {"uri": e.uri("model.py")})
            return str(explored.targets[0].report.message)

        async def another_did(first: str) -> None:
            while await who_checked() == first:
                pass

        first = await who_checked()
        (tmp_path / "lib.py").write_text("x = 2\n")
        if types.WORKSPACE_DID_CHANGE_WATCHED_FILES in e.registered:
            change = types.FileEvent(e.uri("lib.py"), types.FileChangeType.Changed)
            e.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
        await asyncio.wait_for(another_did(first), TIMEOUT_S)
