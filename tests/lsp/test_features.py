"""Hover, lenses and actions as functions of what is known."""

from __future__ import annotations

from typing import Any

import pytest

from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import (
    Benchmark,
    FusionGroup,
    FxGraph,
    FxNode,
    Graph,
    GraphBreak,
    GroupOp,
    GuardFailure,
    Kernel,
    KernelLanguage,
    LineMapping,
    Outcome,
    Phase,
    Predicted,
    PredictedCall,
    PredictedRun,
    Recompile,
    Resources,
    Stage,
    Status,
    Timing,
    ValueFact,
)
from inductoscope.server.extensions import Health, TargetState
from inductoscope.server.features import actions, artifacts, explore, hover, inlay_hints, kernel_documents, lens, status
from inductoscope.server.features.actions import ActionKind
from inductoscope.server.features.commands import CommandName
from inductoscope.server.features.markup import Markup, Words, write
from inductoscope.server.settings import RunMode, Trust
from support.session import Harness, found, place

PATH = "/w/model.py"
MODEL = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):  # <forward>
            y = torch.relu(x)  # <relu>
            z = y + 1  # <add>
            return z.sum()  # <sum>


    def get_inputs():
        return [torch.ones(4, 8)]
"""
LINES = {"forward": 6, "relu": 7, "add": 8, "sum": 9}
SOURCE = "@triton.jit\ndef kernel(x):\n    y = max(x, 0)\n    z = y + 1\n"


def kernel(name: str = "triton_poi_fused_relu_0", *lines: int, **changes: Any) -> Kernel:
    places = tuple(place(line) for line in lines or (LINES["relu"], LINES["add"]))
    mapping = (LineMapping(3, PATH, LINES["relu"]), LineMapping(4, PATH, LINES["add"]))
    fields: dict[str, Any] = {
        "language": KernelLanguage.TRITON,
        "phase": Phase.FORWARD,
        "graph": "0/0",
        "source": SOURCE,
        "lines": places,
        "line_map": mapping if not lines else (),
        "bytes_read": 128,
        "bytes_written": 2048,
    }
    return Kernel(name, **{**fields, **changes})


def group(number: int, name: str, *ops: tuple[str, int], kind: str = "pointwise") -> FusionGroup:
    return FusionGroup(f"0/0:{number}", name, kind, "vertical", tuple(GroupOp(op, PATH, line) for op, line in ops))


async def checked(*findings: Any, device: str = "sim:H200", **report: Any) -> Harness:
    h = Harness()
    await h.configure(device=device)
    assert h.open(MODEL).lines == LINES
    (await h.runner.next()).finish(*findings, **report)
    await h.settled()
    return h


def hovered(h: Harness, line: int, markup: Markup = Markup.PLAIN) -> str | None:
    card = hover.hover(h.session.snapshot(), PATH, line)
    return None if card is None else write(card.blocks, markup)


def titles(h: Harness) -> list[str]:
    return [item.title for item in lens.lenses(h.session.snapshot(), PATH)]


async def test_hover_shows_the_kernel_of_a_line_with_its_part_marked() -> None:
    name = "triton_poi_fused_relu_0"
    h = await checked(
        kernels=(
            kernel(
                predicted=Predicted(1.9, "memory", "roofline", 1.5, 2.4),
                resources=Resources(27, 0, 16, 0.75, "registers"),
            ),
        ),
        fusion_groups=(group(0, name, ("aten.relu", LINES["relu"]), ("aten.add", LINES["add"])),),
    )
    assert hovered(h, LINES["relu"]) == "\n\n".join(
        [
            "Kernel triton_poi_fused_relu_0",
            "- triton kernel, pointwise, vertical fusion of 2 operators\n"
            "- fused with line 8 (aten.add)\n"
            "- reads 128 B, writes 2 KiB\n"
            "- predicted 1.90 µs (1.50 µs to 2.40 µs), memory-bound (model: roofline)\n"
            "- 27 registers, 0 spills, 16 B shared memory, occupancy 75% (limited by registers)",
            "@triton.jit\ndef kernel(x):\n    y = max(x, 0)  # <- line 7\n    z = y + 1",
            "Model.forward, H200 (simulated), just now",
        ]
    )


async def test_hover_says_nothing_when_there_is_nothing() -> None:
    h = await checked(kernels=(kernel(),))
    assert [hovered(h, line) for line in (1, LINES["sum"], 99)] == [None, None, None]


async def test_hover_moves_with_the_text_and_tells_its_age() -> None:
    h = await checked(kernels=(kernel(),))
    moved = h.edit(MODEL.replace("    import torch\n", "    import torch\n    import math\n", 1))
    h.clock.advance(90)
    assert hovered(h, LINES["relu"]) is None or "line 7" not in (hovered(h, LINES["relu"]) or "")
    text = hovered(h, moved["relu"])
    assert text is not None and text.endswith("Model.forward, H200 (simulated), 90 s ago, before the last edits")


async def test_each_launch_of_a_repeated_name_meets_its_own_group() -> None:
    mm = {"language": KernelLanguage.EXTERN, "source": None}
    h = await checked(
        kernels=(
            kernel("extern_kernels.mm", LINES["relu"], **mm),
            kernel("extern_kernels.mm", LINES["add"], **mm),
        ),
        fusion_groups=(
            group(0, "extern_kernels.mm", ("aten.mm", LINES["relu"]), kind="extern"),
            group(1, "extern_kernels.mm", ("aten.addmm", LINES["add"]), kind="extern"),
        ),
    )
    text = hovered(h, LINES["add"])
    assert text is not None and "library call" in text and "fused with" not in text


async def test_forward_and_generated_kernels_come_first_and_the_rest_in_a_line_each() -> None:
    line = LINES["relu"]
    h = await checked(
        kernels=(
            kernel("extern_kernels.mm", line, language=KernelLanguage.EXTERN, source=None),
            kernel("backward", line, phase=Phase.BACKWARD),
            kernel("first", line),
            kernel("second", line, source=SOURCE + "#\n"),
            kernel("second", line, source=SOURCE + "#\n"),
        )
    )
    text = hovered(h, line)
    assert text is not None
    order = ["Kernel first", "Kernel second", "launched 2 times", "also went into", "extern_kernels.mm", "backward"]
    assert [text.find(words) for words in order] == sorted(text.find(words) for words in order)
    assert text.count("@triton.jit") == 2 and -1 not in [text.find(words) for words in order]


async def test_long_sources_are_cut_around_the_part_of_the_line() -> None:
    source = "".join(f"line{number} = 0\n" for number in range(1, 301))
    long = kernel("long", LINES["relu"], source=source, line_map=(LineMapping(200, PATH, LINES["relu"]),))
    text = hovered(await checked(kernels=(long,)), LINES["relu"])
    assert text is not None
    assert "line200 = 0  # <- line 7" in text and "# … 196 lines above" in text and "# … 44 lines below" in text
    assert text.count(" = 0") == hover.SOURCE_LINES


async def test_hover_on_a_break() -> None:
    broken = GraphBreak(
        file=PATH,
        line=LINES["add"],
        end_line=LINES["add"],
        column=8,
        end_column=17,
        code="GB0001",
        reason="Unsupported `thing`",
        explanation="Dynamo cannot trace it.",
        hints=("Do without.",),
        link="https://example.org/a b",
        frames=(),
        outcome=Outcome.REST_EAGER,
        count=2,
    )
    h = await checked(breaks=(broken,), status=Status.PARTIAL)
    text = hovered(h, LINES["add"], Markup.MARKDOWN)
    assert text is not None and text.startswith(
        "**Graph break: Unsupported \\`thing\\`**\n\n"
        "The rest of this function runs eagerly. Met 2 times.\n\n"
        "Dynamo cannot trace it.\n\n- Do without.\n\n[About GB0001](https://example.org/a%20b)"
    )


async def test_hover_on_a_recompile_is_on_the_line_that_made_the_guard() -> None:
    guard = GuardFailure(
        "x", "size", "4", "5", "tensor 'x' size mismatch", "family", PATH, LINES["sum"], "Mark it dynamic."
    )
    h = await checked(recompiles=(Recompile(PATH, LINES["forward"], "forward", "0/1", 1, (guard,)),))
    assert hovered(h, LINES["forward"]) is None
    text = hovered(h, LINES["sum"])
    assert text is not None
    assert "Recompiled on call 2: forward" in text
    assert "the guard tensor 'x' size mismatch failed (now 5). Mark it dynamic." in text


def test_indented_text_is_no_code_in_markdown() -> None:
    text = write([Words("It failed:\n\n    a_b = f(x)\n")], Markup.MARKDOWN)
    assert text == "It failed:  \na\\_b = f(x)"


async def test_code_in_markdown_cannot_end_its_fence() -> None:
    evil = kernel("evil", LINES["relu"], source="x = '''\n```\n'''\n")
    text = hovered(await checked(kernels=(evil,)), LINES["relu"], Markup.MARKDOWN)
    assert text is not None and "````python\nx = '''\n```\n'''\n````" in text


async def test_lens_sums_up_the_first_versions_of_the_forward_pass() -> None:
    h = await checked(
        graphs=(
            Graph("0/0", "forward", PATH, 6, 37),
            Graph("0/0", "forward", PATH, 6, 50, Phase.BACKWARD),
            Graph("0/1", "forward", PATH, 6, 37),
        ),
        kernels=(kernel("a"), kernel("b", phase=Phase.BACKWARD), kernel("c", graph="0/1")),
        recompiles=(Recompile(PATH, 6, "forward", "0/1", 1, ()),),
    )
    assert titles(h) == [
        "H200 (simulated): 1 graph, 37 ops in 1 kernel, 0 breaks, 1 recompile",
        "Benchmark compiled vs eager",
        "Kernels",
        "Guards",
        "Timeline",
    ]


async def test_lens_tells_what_an_edit_changed() -> None:
    h = await checked(kernels=(kernel("a"), kernel("b", source="b")), graphs=(Graph("0/0", "forward", PATH, 6, 5),))
    h.edit(MODEL.replace("+ 1", "+ 2"))
    h.save()
    (await h.runner.next()).finish(kernels=(kernel("a"),), graphs=(Graph("0/0", "forward", PATH, 6, 5),))
    await h.settled()
    assert titles(h)[0] == "H200 (simulated): 1 graph, 5 ops in 1 kernel, 0 breaks (since the last run: 2 -> 1 kernel)"
    h.save()
    h.session.check()
    (await h.runner.next()).finish(kernels=(kernel("a"),), graphs=(Graph("0/0", "forward", PATH, 6, 5),))
    await h.settled()
    assert titles(h)[0] == "H200 (simulated): 1 graph, 5 ops in 1 kernel, 0 breaks"


async def test_lens_while_something_runs_and_after_it_failed() -> None:
    h = Harness()
    h.open(MODEL)
    run = await h.runner.next()
    await h.flushed()
    assert titles(h)[0] == "checking…"
    run.finish(status=Status.EAGER, message="Dynamo skipped forward. Really.")
    await h.settled()
    assert titles(h)[0] == "nothing was compiled: Dynamo skipped forward."
    h.edit(MODEL.replace("+ 1", "+ 2"))
    assert titles(h)[0].endswith("(edited since)")
    h.save()
    run = await h.runner.next()
    await h.flushed()
    assert titles(h)[0].endswith("(checking: edited line 8…)")
    run.fail(FailureKind.TIMEOUT, "It took too long. Make it smaller.")
    await h.settled()
    assert titles(h)[0].startswith("failed: It took too long. (")


@pytest.mark.parametrize(
    ("trust", "mode", "title"),
    [
        (Trust.UNTRUSTED, RunMode.ON_SAVE, "not checked: this workspace is not trusted"),
        (Trust.TRUSTED, RunMode.MANUAL, "not checked yet: click to check"),
    ],
)
async def test_lens_of_a_target_that_was_never_run(trust: Trust, mode: RunMode, title: str) -> None:
    h = Harness()
    await h.configure(run=mode)
    h.session.trust(trust)
    h.open(MODEL)
    await h.settled()
    assert titles(h)[0] == title


async def test_lens_shows_a_benchmark_and_says_when_it_is_old() -> None:
    h = await checked()
    h.session.benchmark(PATH, "Model.forward")
    run = await h.runner.next()
    await h.flushed()
    assert titles(h)[1] == "measuring…"
    bench = Benchmark("CPU", "median", Timing(200.0, 1, 9), Timing(100.0, 1, 9), speedup=2.0)
    run.finish(benchmark=bench)
    await h.settled()
    assert titles(h)[1] == "compiled 2.00x faster than eager on CPU: 100 µs against 200 µs"
    h.edit(MODEL.replace("+ 1", "+ 2"))
    assert titles(h)[1].endswith("(edited since)")


async def test_lens_gives_no_speed_up_that_was_refused() -> None:
    h = await checked()
    h.session.benchmark(PATH, "Model.forward")
    (await h.runner.next()).finish(
        benchmark=Benchmark("CPU", "median", refused="Nothing was compiled. Look at the breaks.")
    )
    await h.settled()
    assert titles(h)[1] == "no speed-up (CPU): Nothing was compiled."


async def test_a_benchmark_that_failed_says_why() -> None:
    h = await checked()
    h.session.benchmark(PATH, "Model.forward")
    (await h.runner.next()).fail(FailureKind.CRASH, "The worker died. Look at the log.")
    await h.settled()
    assert titles(h)[1] == "Benchmark failed: The worker died."
    assert h.editor.messages(PATH) == []


async def test_a_lens_on_an_edited_definition_waits_for_the_next_scan_that_can_read_it() -> None:
    h = await checked()
    h.edit(MODEL.replace("def forward(self, x):", "def forward(self, x:"))
    assert titles(h) == []


async def test_actions_offer_what_lenses_do_and_say_why_not() -> None:
    h = await checked(kernels=(kernel(),))
    found_actions = actions.actions(h.session.snapshot(), PATH, LINES["add"], LINES["add"])
    assert [(item.kind, item.disabled) for item in found_actions] == [
        (ActionKind.CHECK, None),
        (ActionKind.BENCHMARK, None),
        (ActionKind.SHOW_KERNELS, None),
        (ActionKind.SHOW_GUARDS, None),
        (ActionKind.SHOW_TIMELINE, None),
    ]
    assert [item.command.name for item in found_actions if item.command] == [
        CommandName.CHECK,
        CommandName.BENCHMARK,
        CommandName.SHOW_KERNELS,
        CommandName.SHOW_GUARDS,
        CommandName.SHOW_TIMELINE,
    ]
    h.session.trust(Trust.UNTRUSTED)
    reasons = {item.kind: item.disabled for item in actions.actions(h.session.snapshot(), PATH, 6, 6)}
    assert "not trusted" in (reasons[ActionKind.BENCHMARK] or "") and reasons[ActionKind.SHOW_KERNELS] is None
    assert actions.actions(h.session.snapshot(), PATH, 1, 1) == ()


async def test_only_the_actions_that_are_asked_for_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    h = await checked(kernels=(kernel(),))
    computed: list[str] = []
    monkeypatch.setattr(actions.fixes, "fixes", lambda *_: computed.append("fixes") or ())
    monkeypatch.setattr(actions.fixes, "all_safe", lambda *_: computed.append("all") or ())

    def kinds(*only: str) -> list[str]:
        found = actions.actions(h.session.snapshot(), PATH, LINES["add"], LINES["add"], only)
        return [item.kind.value for item in found]

    assert kinds("source.inductoscope.check") == ["source.inductoscope.check"] and computed == []
    assert len(kinds("source.inductoscope")) == 5 and computed == []
    assert kinds("source.fixAll") == [] and computed == ["all"]
    assert kinds("quickfix") == [] and computed == ["all", "fixes"]
    assert kinds("source.inductoscope.ch", "refactor") == kinds() == [] and computed == ["all", "fixes"]
    assert len(kinds("")) == 5 and computed == ["all", "fixes", "fixes", "all"]


async def test_documents_of_a_target() -> None:
    h = await checked(kernels=(kernel(), kernel("extern_kernels.mm", language=KernelLanguage.EXTERN, source=None)))
    snapshot = h.session.snapshot()
    view = snapshot.find(PATH, "Model.forward")
    assert view is not None and view.good is not None
    listed = kernel_documents.listed(view.good.report)
    generated, library = (artifacts.kernel_address(view, item) for item in listed)
    assert artifacts.content(snapshot, generated) == SOURCE
    assert "library call" in artifacts.content(snapshot, library)
    report = artifacts.content(snapshot, artifacts.page_address(view, artifacts.Page.REPORT))
    assert SOURCE in report and "(lines 7, 8)" in report
    gone = artifacts.Address(PATH, "Other.forward", artifacts.REPORT)
    assert artifacts.content(snapshot, gone).startswith("Nothing is known of Other.forward")
    for address in (generated, library, gone):
        assert artifacts.parse(address.uri) == address


async def test_a_graph_is_a_document_whose_operators_lead_to_their_line_as_it_is_now() -> None:
    node = FxNode("relu", "call_function", "torch.relu", "x", "f32[4]", "cpu", PATH, LINES["relu"])
    h = await checked(fx_graphs=(FxGraph("0/0", Stage.CAPTURED, Phase.FORWARD, 1, (node,)),))
    moved = h.edit(MODEL.replace("    import torch\n", "    import torch\n    import math\n", 1))
    snapshot = h.session.snapshot()
    (target,) = explore.explore(snapshot, PATH).targets
    assert target.report is not None and target.report.fx_graphs[0].nodes == ()
    (listed,) = target.graphs
    assert (listed.stage, listed.ops, listed.language) == (Stage.CAPTURED, 1, "python")
    address = artifacts.parse(listed.uri)
    assert address is not None
    lines = artifacts.content(snapshot, address).split("\n")
    at = next(number for number, line in enumerate(lines, 1) if "torch.relu(x)" in line)
    assert artifacts.origins(snapshot, address, at) == (artifacts.Spot(None, PATH, moved["relu"]),)
    assert artifacts.origins(snapshot, address, 1) == ()


async def test_explore_gives_the_report_and_where_its_lines_went() -> None:
    h = await checked(found(LINES["add"], "broken"))
    moved = h.edit(MODEL.replace("    import torch\n", "    import torch\n    import math\n", 1))
    (target,) = explore.explore(h.session.snapshot(), PATH).targets
    assert (target.name, target.line, target.stale) == ("Model.forward", moved["forward"], True)
    assert target.lines == {str(LINES["add"]): moved["add"]}
    assert target.report is not None and target.report.findings[0].message == "broken"


async def test_status_tells_every_target_and_the_interpreter() -> None:
    h = await checked()
    now = status.status(h.session.snapshot())
    assert (now.health, now.quiescent, now.torch, now.device) == (Health.OK, True, "2.13.0", "sim:H200")
    assert now.message == "torch 2.13.0, H200 (simulated)"
    assert [(item.name, item.state, item.line) for item in now.targets] == [("Model.forward", TargetState.CHECKED, 6)]
    h.save()
    h.session.check()
    now = status.status(h.session.snapshot())
    assert (now.quiescent, now.targets[0].state) == (False, TargetState.CHECKING)


def value(line: int, text: str, name: str | None = None, **changes: Any) -> ValueFact:
    return ValueFact(PATH, line, changes.pop("op", "relu"), text, "0/0", "cuda:0", name, **changes)


async def test_hover_begins_with_what_the_line_makes() -> None:
    values = (
        value(LINES["relu"], "f32[4, 8]", "y"),
        value(LINES["relu"], "f32[8, 4]", "y", stride=("1", "8"), op=None),
        value(LINES["add"], "f32[1]"),
    )
    h = await checked(values=values, kernels=(kernel(),))
    text = hovered(h, LINES["relu"]) or ""
    assert text.startswith(
        "This line makes\n\n- y: f32[4, 8] on cuda:0 (relu)\n- y: f32[8, 4], strides [1, 8] on cuda:0\n\nKernel "
    )


async def test_variables_carry_their_shapes() -> None:
    values = (
        value(LINES["relu"], "f32[4, 8]", "y"),
        value(LINES["add"], "f32[s77=4, 8]", "z"),
        value(LINES["add"], "f32[4, 8]", "z"),
        value(LINES["add"], "f32[2, 8]", "z"),
        value(LINES["sum"], "f32[]"),
        value(LINES["sum"], "f32[]", "absent"),
    )
    h = await checked(values=values)
    found = inlay_hints.inlay_hints(h.session.snapshot(), PATH)
    assert [(hint.line, hint.column, hint.label) for hint in found] == [
        (LINES["relu"], 9, ": f32[4, 8]"),
        (LINES["add"], 9, ": f32[s77=4, 8] | f32[4, 8] | …"),
    ]
    assert found[1].tooltip.splitlines() == [
        f"{text} in Model.forward, H200 (simulated)" for text in ("f32[s77=4, 8]", "f32[4, 8]", "f32[2, 8]")
    ]


async def test_hints_move_with_the_text_and_go_with_an_edited_line() -> None:
    h = await checked(values=(value(LINES["relu"], "f32[4, 8]", "y"), value(LINES["add"], "f32[4, 8]", "z")))
    asked_again = h.editor.hint_refreshes
    h.edit(MODEL.replace("z = y + 1", "z = y + 2").replace("import torch\n", "import torch\n    import math\n", 1))
    await h.flushed()
    found = inlay_hints.inlay_hints(h.session.snapshot(), PATH)
    assert [(hint.line, hint.label) for hint in found] == [(LINES["relu"] + 1, ": f32[4, 8]")]
    assert h.editor.hint_refreshes == asked_again + 1


async def test_hints_can_be_turned_off() -> None:
    h = await checked(values=(value(LINES["relu"], "f32[4, 8]", "y"),))
    await h.configure(device="sim:H200", inlay_hints=frozenset())
    assert inlay_hints.inlay_hints(h.session.snapshot(), PATH) == ()


async def test_a_lens_and_the_hover_of_the_definition_tell_the_predicted_gain() -> None:
    compiled, eager = PredictedRun(33.1, 25.0, 49.0, 33.1, 30.0, 4), PredictedRun(59.0, 44.0, 80.0, 41.0, 59.0, 9)
    call = PredictedCall(None, Phase.FORWARD, 1, compiled, eager, "a model", 1.78, 1.3, 2.4)
    h = await checked(predicted_calls=(call,))
    assert "predicted 33.1 µs a call, 1.8x (1.3x to 2.4x) against eager" in titles(h)
    (view,) = h.session.snapshot().targets_in(PATH)
    card = hovered(h, view.target.line)
    assert card is not None
    assert "What a call is predicted to take" in card
    assert "so compiling gives 1.8x (1.3x to 2.4x)" in card
    assert "What a call is predicted to take" not in (hovered(h, LINES["relu"]) or "")
