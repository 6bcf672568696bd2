"""Fixes of a snapshot: for what is shown, on lines that are still as they were, each once."""

from __future__ import annotations

import dataclasses

from inductoscope.server import to_lsp
from inductoscope.server.features import actions, fixes
from inductoscope.server.features.actions import ActionKind
from inductoscope.server.positions import Encoding
from inductoscope.server.to_lsp import Profile, Where
from support.fixing import apply
from support.session import Harness, found

PATH = "/w/model.py"
MODEL = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            x = x + 1
            print(x)  # <told>
            torch._dynamo.graph_break()  # <asked>
            return x.sum().item()  # <read>

    def get_inputs():
        return [torch.ones(2)]
"""
CAPTURE = "Set `torch._dynamo.config.capture_scalar_outputs = True` or `export TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1`."


async def test_a_fix_answers_the_finding_and_says_whether_it_is_safe() -> None:
    h = Harness()
    lines = h.open(MODEL)
    (await h.runner.next()).finish(found(lines["asked"], "asked"), found(lines["told"], "told"))
    snapshot = await h.settled()
    (fix,) = fixes.fixes(snapshot, PATH, lines["asked"], lines["asked"])
    assert (fix.title, fix.preferred) == ("Remove the graph break that is asked for here", True)
    assert [shown.finding.message for shown in fix.answers] == ["asked"]
    others = fixes.fixes(snapshot, PATH, lines["told"], lines["told"])
    assert [(fix.title.partition(":")[0], fix.preferred) for fix in others] == [("Changes behaviour", False)] * 2


async def test_no_fix_for_a_line_that_was_edited_since() -> None:
    h = Harness()
    lines = h.open(MODEL)
    (await h.runner.next()).finish(found(lines["told"], "told"))
    await h.settled()
    h.edit(MODEL.replace("print(x)", "print(x, x)"))
    assert fixes.fixes(h.session.snapshot(), PATH, 1, 99) == ()


async def test_a_fix_moves_with_its_line() -> None:
    h = Harness()
    lines = h.open(MODEL)
    (await h.runner.next()).finish(found(lines["asked"], "asked"))
    await h.settled()
    moved = h.edit(MODEL.replace("    import torch\n", "    import os\n    import torch\n"))
    (fix,) = fixes.fixes(h.session.snapshot(), PATH, 1, 99)
    assert fix.edits[0].line == moved["asked"] == lines["asked"] + 1


async def test_no_fix_where_a_line_that_it_replaces_was_edited() -> None:
    text = """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # <test>
                    x = x + 1
                return x

        def get_inputs():
            return [torch.ones(2)]
    """
    h = Harness()
    line = h.open(text)["test"]
    (await h.runner.next()).finish(found(line, "branch"))
    assert fixes.fixes(await h.settled(), PATH, line, line)
    h.edit(text.replace("x + 1", "x + 2"))
    assert fixes.fixes(h.session.snapshot(), PATH, line, line) == ()


async def test_the_same_edit_for_two_findings_is_one_fix() -> None:
    h = Harness()
    lines = h.open(MODEL)
    (await h.runner.next()).finish(
        found(lines["read"], "one", id="GB0124", hints=(CAPTURE,)),
        found(lines["read"], "two", id="GB0033", hints=(CAPTURE,)),
    )
    snapshot = await h.settled()
    settings = [fix for fix in fixes.fixes(snapshot, PATH, 1, 99) if fix.cause == "settings"]
    assert [len(fix.answers) for fix in settings] == [2]


async def test_everything_that_is_safe_can_be_done_in_the_whole_file() -> None:
    h = Harness()
    twice = MODEL.replace("print(x)  # <told>", "torch._dynamo.graph_break()  # <first>")
    lines = h.open(twice)
    reports = [found(lines[name], name) for name in ("first", "asked")]
    (await h.runner.next()).finish(*reports, found(lines["read"], "read", hints=(CAPTURE,)))
    snapshot = await h.settled()
    everywhere = [item for item in actions.actions(snapshot, PATH, 1, 1) if item.kind is ActionKind.FIX_ALL]
    assert [item.title for item in everywhere] == [
        "Everywhere in this file: Remove the graph break that is asked for here",
        "Everywhere in this file: Let the compiler trace numbers that are read from tensors "
        "(torch._dynamo.config.capture_scalar_outputs)",
    ]
    fix = everywhere[0].fix
    assert fix is not None and len(fix.answers) == 2
    assert "graph_break" not in apply(snapshot.documents.by_path[PATH].text.source, fix.edits)


async def test_findings_of_other_kinds_have_no_fix() -> None:
    h = Harness()
    lines = h.open(MODEL)
    (await h.runner.next()).finish(found(lines["asked"], "x", code="warning"))
    assert fixes.fixes(await h.settled(), PATH, 1, 99) == ()


async def test_the_comment_for_inputs_goes_above_the_decorators() -> None:
    h = Harness()
    fixture = h.open("import torch\n\n\n@torch.compile\ndef f(x, y):  # <f>\n    return x + y\n")
    snapshot = await h.settled()
    (fix,) = fixes.fixes(snapshot, PATH, fixture["f"], fixture["f"])
    (edit,) = fix.edits
    assert edit.start == edit.end == (4, 0)
    assert edit.text.startswith("# inductoscope: ") and edit.text.endswith("\n")
    assert not fix.preferred and not fixes.all_safe(snapshot, PATH)


async def test_what_clients_get_counts_in_their_units_and_leaves_out_what_is_disabled() -> None:
    h = Harness()
    text = """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x):
                y = {"😀": x}["😀"].max().item()  # <read>
                return x / max(y, 1.0)

        def get_inputs():
            return [torch.ones(2)]
    """
    lines = h.open(text)
    source = h.session.snapshot().documents.by_path[PATH].text
    column = source.line(lines["read"]).index("{")
    end = source.line(lines["read"]).index("()  #") + 2
    broken = found(lines["read"], "read", column=column, end_column=end, id="GB0124", hints=(CAPTURE,))
    (await h.runner.next()).finish(broken)
    snapshot = await h.settled()
    client = Profile(encoding=Encoding.UTF16)
    where = Where(lambda path: f"file://{path}", lambda path: snapshot.documents.by_path[path].text, client.encoding)
    quick = [item for item in actions.actions(snapshot, PATH, lines["read"], lines["read"]) if item.fix is not None]
    sent = [to_lsp.code_action(item, where, client) for item in quick if item.kind is ActionKind.QUICK_FIX]
    assert [action.is_preferred for action in sent] == [True, None]
    assert sent[1].edit is not None and sent[1].edit.changes is not None
    (edit,) = sent[1].edit.changes[f"file://{PATH}"]
    assert (edit.range.start.character, edit.range.end.character) == (column, end + 2)
    disabled = to_lsp.code_action(dataclasses.replace(quick[0], disabled="because"), where, client)
    assert disabled.edit is None and disabled.disabled is not None and disabled.disabled.reason == "because"
