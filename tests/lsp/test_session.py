"""What the session runs, keeps and shows, against a runner that the test answers."""

from __future__ import annotations

from pathlib import Path

from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import ApartFrom, FusionGroup, GroupOp, Rung, Status
from inductoscope.server.settings import RunMode, Trust
from inductoscope.server.snapshot import Activity
from support.session import Harness, found

MODEL = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x):  # <forward>
            y = torch.relu(x)  # <relu>
            print("hi")  # <print>
            return y.sum()  # <sum>


    def get_inputs():
        return [torch.ones(4, 8)]
"""
MOVED = MODEL.replace("    import torch\n", "    # a comment\n\n    import torch\n", 1)
EDITED = MODEL.replace("y.sum()", "y.mean()")


async def checked(text: str = MODEL) -> Harness:
    """A session in which the model was checked and a break found at the print."""
    h = Harness()
    fixture = h.open(text)
    run = await h.runner.next()
    run.finish(found(fixture["print"], "print breaks the graph"))
    await h.settled()
    return h


async def test_opening_a_file_runs_its_target_and_shows_what_is_found() -> None:
    h = Harness()
    fixture = h.open(MODEL)
    run = await h.runner.next()
    assert (run.name, run.request.rung, run.request.cwd) == ("Model.forward", Rung.ASSEMBLE, "/w")
    run.finish(found(fixture["print"], "print breaks the graph"))
    snapshot = await h.settled()
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "print breaks the graph")]
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and view.good.version == 1 and view.activity is Activity.IDLE


async def test_a_file_without_a_target_is_left_alone() -> None:
    h = Harness()
    h.open("x = 1\n")
    await h.settled()
    assert h.runner.names == [] and h.editor.shown == {}


async def test_the_scan_is_shown_without_any_run() -> None:
    h = Harness()
    fixture = h.open(
        """
        import torch

        @torch.compile
        def f(x):  # <f>
            return x
        """
    )
    await h.settled()
    assert h.runner.names == []
    assert [(line, "f" in text) for line, text in h.editor.messages("/w/model.py")] == [(fixture["f"], True)]


async def test_findings_appear_while_the_run_goes_on() -> None:
    h = Harness()
    fixture = h.open(MODEL)
    run = await h.runner.next()
    run.find(found(fixture["print"], "first"))
    await h.flushed()
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "first")]
    run.find(found(fixture["sum"], "second"))
    run.rung_done(found(fixture["print"], "first"), found(fixture["sum"], "second"))
    await h.flushed()
    run.finish(found(fixture["print"], "first"), found(fixture["sum"], "second"))
    await h.settled()
    texts = [messages for _, messages in h.editor.publications]
    assert texts == [("first",), ("first", "second")]


async def test_editing_runs_nothing_until_the_file_is_saved() -> None:
    h = await checked()
    h.edit(EDITED)
    await h.settled()
    assert h.runner.names == ["Model.forward"]
    h.save()
    run = await h.runner.next()
    run.finish()
    await h.settled()
    assert h.editor.messages("/w/model.py") == []


async def test_saving_comments_and_blank_lines_runs_nothing_and_moves_the_findings() -> None:
    h = await checked()
    moved = h.edit(MOVED)
    h.save()
    await h.settled()
    assert h.runner.names == ["Model.forward"]
    assert h.editor.messages("/w/model.py") == [(moved["print"], "print breaks the graph")]


async def test_a_comment_on_the_line_of_a_finding_hides_it_until_the_file_is_saved_and_runs_nothing() -> None:
    h = await checked()
    fixture = h.edit(MODEL.replace("# <print>", "# <print> why"))
    await h.settled()
    assert h.editor.messages("/w/model.py") == []
    h.save()
    await h.settled()
    assert h.runner.names == ["Model.forward"]
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "print breaks the graph")]


async def test_undoing_an_edit_brings_the_finding_back() -> None:
    h = await checked()
    h.edit(MODEL.replace('print("hi")', 'print("ho")'))
    await h.settled()
    assert h.editor.messages("/w/model.py") == []
    fixture = h.edit(MODEL)
    await h.settled()
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "print breaks the graph")]


async def test_findings_stay_while_the_next_run_goes_on() -> None:
    h = await checked()
    fixture = h.edit(EDITED)
    h.save()
    run = await h.runner.next()
    await h.flushed()
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "print breaks the graph")]
    run.find(found(fixture["print"], "said in new words"))
    await h.flushed()
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "said in new words")]
    run.finish()
    await h.settled()
    assert h.editor.messages("/w/model.py") == []


async def test_a_failing_run_adds_and_takes_nothing_away() -> None:
    h = await checked()
    fixture = h.edit(EDITED)
    h.save()
    (await h.runner.next()).fail(FailureKind.CRASH, "the worker died")
    snapshot = await h.settled()
    expected = [(fixture["forward"], "the worker died"), (fixture["print"], "print breaks the graph")]
    assert h.editor.messages("/w/model.py") == expected
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and view.failed is not None
    h.save()
    (await h.runner.next()).finish(found(fixture["sum"], "only this"))
    await h.settled()
    assert h.editor.messages("/w/model.py") == [(fixture["sum"], "only this")]


async def test_what_failed_is_tried_again_when_its_own_file_is_saved_and_not_when_another_is() -> None:
    h = await checked()
    h.open("x = 1\n", path="/w/other.py")
    h.session.check()
    (await h.runner.next()).fail(FailureKind.CRASH, "the worker died")
    await h.settled()
    h.edit("x = 2\n", path="/w/other.py")
    h.save("/w/other.py")
    h.session.files_changed(frozenset({"/w/model.py"}))
    await h.settled()
    assert len(h.runner.runs) == 2
    h.save()
    (await h.runner.next()).finish()
    await h.settled()
    assert len(h.runner.runs) == 3


async def test_a_newer_save_cancels_the_run_that_it_makes_pointless() -> None:
    h = Harness()
    h.open(MODEL)
    first = await h.runner.next()
    h.edit(EDITED)
    h.save()
    second = await h.runner.next()
    assert first.cancelled and not second.cancelled
    second.finish()
    snapshot = await h.settled()
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and view.good.version == 2


async def test_saving_the_program_that_is_being_run_does_not_start_it_again() -> None:
    h = Harness()
    h.open(MODEL)
    run = await h.runner.next()
    h.save()
    run.finish()
    await h.settled()
    assert h.runner.names == ["Model.forward"]


async def test_a_result_that_comes_after_an_edit_is_shown_at_the_moved_lines() -> None:
    h = Harness()
    fixture = h.open(MODEL)
    run = await h.runner.next()
    moved = h.edit(MOVED.replace("y.sum()", "y.mean()"))
    run.finish(found(fixture["print"], "kept"), found(fixture["sum"], "edited"))
    snapshot = await h.settled()
    assert h.editor.messages("/w/model.py") == [(moved["print"], "kept")]
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and snapshot.is_stale(view.good)


async def test_text_that_cannot_be_parsed_keeps_what_was_known() -> None:
    h = await checked()
    fixture = h.edit(MODEL + "\n    def broken(:\n")
    snapshot = await h.settled()
    assert [view.target.name for view in snapshot.targets_in("/w/model.py")] == ["Model.forward"]
    assert (fixture["print"], "print breaks the graph") in h.editor.messages("/w/model.py")
    assert len(h.editor.messages("/w/model.py")) == 2  # and the syntax error


async def test_a_target_that_is_gone_takes_its_findings_and_its_run_along() -> None:
    h = await checked()
    h.edit(EDITED)
    h.save()
    run = await h.runner.next()
    h.edit("x = 1\n")
    await h.settled()
    assert run.cancelled
    assert h.editor.messages("/w/model.py") == []


async def test_a_finding_in_another_file_is_shown_there_and_leaves_with_its_target() -> None:
    h = Harness()
    h.open(MODEL)
    (await h.runner.next()).finish(found(3, "in the library", path="/w/lib.py"))
    await h.settled()
    assert h.editor.messages("/w/lib.py") == [(3, "in the library")]
    h.session.close("/w/model.py")
    await h.flushed()
    assert h.editor.messages("/w/lib.py") == []


async def test_two_targets_that_meet_the_same_break_show_it_once() -> None:
    h = Harness()
    fixture = h.open(
        """
        import torch

        def helper(x):
            print(x)  # <print>
            return x

        # inductoscope: x=f32[4]
        @torch.compile
        def f(x):
            return helper(x)

        # inductoscope: x=f32[4]
        @torch.compile
        def g(x):
            return helper(x)
        """
    )
    for _ in range(2):
        (await h.runner.next()).finish(found(fixture["print"], "print breaks the graph"))
    await h.settled()
    assert h.runner.names == ["f", "g"]
    assert h.editor.messages("/w/model.py") == [(fixture["print"], "print breaks the graph")]


async def test_codes_that_are_off_are_not_shown_until_asked_for() -> None:
    h = Harness()
    fixture = h.open(MODEL)
    (await h.runner.next()).finish(found(fixture["sum"], "stays apart", code="missed-fusion"))
    await h.settled()
    assert h.editor.messages("/w/model.py") == []
    await h.configure(show=frozenset({"missed-fusion"}))
    await h.settled()
    assert h.editor.messages("/w/model.py") == [(fixture["sum"], "stays apart")]
    await h.configure(hide=frozenset({"missed-fusion"}), show=frozenset({"missed-fusion"}))
    await h.settled()
    assert h.editor.messages("/w/model.py") == []


async def test_kernels_that_stay_apart_are_told_to_whoever_asks() -> None:
    h = Harness()
    fixture = h.open(MODEL)
    ops = {name: (GroupOp(f"aten.{name}", "/w/model.py", fixture[name]),) for name in ("relu", "sum")}
    apart = (ApartFrom("0/0:0", "will create cycle"),)
    first = FusionGroup("0/0:0", "poi_0", "pointwise", "none", ops["relu"])
    second = FusionGroup("0/0:1", "red_1", "reduction", "none", ops["sum"], apart)
    (await h.runner.next()).finish(fusion_groups=(first, second))
    await h.settled()
    assert h.editor.messages("/w/model.py") == []
    await h.configure(show=frozenset({"missed-fusion"}))
    await h.settled()
    said = f"red_1 is not fused with poi_0 (line {fixture['relu']}): each would have to wait for the other."
    assert h.editor.messages("/w/model.py") == [(fixture["sum"], said)]


async def test_unsaved_text_of_every_open_file_goes_to_the_worker() -> None:
    h = Harness()
    h.open("VALUE = 1\n", path="/w/lib.py")
    h.edit("VALUE = 2\n", path="/w/lib.py")
    fixture = h.open(MODEL)
    run = await h.runner.next()
    assert run.request.overlays == {"/w/lib.py": "VALUE = 2\n", "/w/model.py": fixture.source}


async def test_typing_runs_after_a_pause_when_asked_to() -> None:
    h = Harness()
    await h.configure(run=RunMode.ON_TYPE)
    h.open(MODEL)
    (await h.runner.next()).finish()
    await h.settled()
    h.edit(EDITED)
    h.clock.advance(0.2)
    h.edit(EDITED.replace("relu", "tanh"))
    h.clock.advance(0.2)
    await h.flushed()
    assert h.runner.names == ["Model.forward"]
    h.clock.advance(0.2)
    run = await h.runner.next()
    run.finish()
    snapshot = await h.settled()
    assert h.runner.names == ["Model.forward"] * 2
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and view.good.version == 3


async def test_manual_runs_only_when_asked() -> None:
    h = Harness()
    await h.configure(run=RunMode.MANUAL)
    h.open(MODEL)
    h.save()
    await h.settled()
    assert h.runner.names == []
    h.session.check("/w/model.py", "Model.forward")
    (await h.runner.next()).finish()
    await h.settled()


async def test_checking_by_hand_runs_though_nothing_changed() -> None:
    h = await checked()
    h.session.check()
    (await h.runner.next()).finish()
    await h.settled()
    assert h.runner.names == ["Model.forward"] * 2


async def test_no_code_is_run_in_an_untrusted_workspace() -> None:
    h = Harness()
    h.session.trust(Trust.UNTRUSTED)
    h.open(MODEL)
    h.save()
    h.session.check()
    h.session.benchmark("/w/model.py", "Model.forward")
    await h.settled()
    assert h.runner.names == []
    h.session.trust(Trust.TRUSTED)
    (await h.runner.next()).finish()
    await h.settled()


async def test_withdrawing_trust_ends_what_runs() -> None:
    h = Harness()
    h.open(MODEL)
    run = await h.runner.next()
    h.session.trust(Trust.UNTRUSTED)
    await h.settled()
    assert run.cancelled


async def test_another_device_makes_results_out_of_date_and_another_interpreter_workers_too() -> None:
    h = await checked()
    await h.configure(device="cpu")
    run = await h.runner.next()
    assert (run.request.device, h.runner.closed) == ("cpu", 0)
    run.finish()
    await h.settled()
    await h.configure(device="cpu", interpreter=("/opt/python",))
    (await h.runner.next()).finish()
    await h.settled()
    assert h.runner.closed == 1


async def test_a_benchmark_is_a_run_of_its_own_and_keeps_what_is_known() -> None:
    h = await checked()
    h.session.benchmark("/w/model.py", "Model.forward")
    run = await h.runner.next()
    await h.flushed()
    (view,) = h.session.snapshot().targets_in("/w/model.py")
    assert run.request.rung is Rung.MEASURE and view.activity is Activity.MEASURING
    run.finish(found(1, "about the benchmark run only"))
    snapshot = await h.settled()
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.measured is not None
    assert [text for _, text in h.editor.messages("/w/model.py")] == ["print breaks the graph"]


async def test_a_check_does_not_cancel_a_benchmark() -> None:
    h = await checked()
    h.session.benchmark("/w/model.py", "Model.forward")
    measuring = await h.runner.next()
    h.edit(EDITED)
    h.save()
    await h.flushed()
    assert not measuring.cancelled and len(h.runner.runs) == 2  # one at a time, so that numbers mean something
    measuring.finish()
    (await h.runner.next()).finish()
    await h.settled()


async def test_progress_is_reported_can_be_cancelled_and_always_ends() -> None:
    h = Harness()
    h.open(MODEL)
    run = await h.runner.next()
    run.progress("capturing")
    (progress,) = h.editor.progresses
    assert (progress.title, progress.texts) == ("Checking Model.forward", ["capturing"])
    progress.cancel()
    snapshot = await h.settled()
    assert run.cancelled and progress.ended == "cancelled"
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is None and view.activity is Activity.IDLE


async def test_saving_an_imported_file_runs_the_targets_that_need_it(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("VALUE = 1\n")
    (tmp_path / "other.py").write_text("VALUE = 1\n")
    model, lib, other = (str(tmp_path / name) for name in ("model.py", "lib.py", "other.py"))
    h = Harness()
    h.open(MODEL.replace("    import torch\n", "    import lib, torch\n", 1), path=model)
    (await h.runner.next()).finish()
    h.open("VALUE = 1\n", path=other)
    h.edit("VALUE = 2\n", path=other)
    h.save(other)
    await h.settled(model)
    assert len(h.runner.runs) == 1
    h.open("VALUE = 1\n", path=lib)
    h.edit("VALUE = 2\n", path=lib)
    h.save(lib)
    (await h.runner.next()).finish()
    await h.settled(model)
    assert len(h.runner.runs) == 2


async def test_a_file_opened_after_the_run_moves_its_findings_too() -> None:
    h = Harness()
    h.open(MODEL)
    (await h.runner.next()).finish(found(2, "in the library", path="/w/lib.py"))
    await h.settled()
    h.open("x = 1\ny = 2\n", path="/w/lib.py")
    h.edit("# a\n# b\nx = 1\ny = 2\n", path="/w/lib.py")
    await h.settled()
    assert h.editor.messages("/w/lib.py") == [(4, "in the library")]


async def test_restarting_drops_the_workers_and_checks_everything() -> None:
    h = await checked()
    await h.session.restart()
    (await h.runner.next()).finish()
    await h.settled()
    assert h.runner.closed == 1


async def test_nothing_is_published_twice() -> None:
    h = await checked()
    before = list(h.editor.publications)
    h.save()
    h.session.files_changed(frozenset({"/w/model.py"}))
    await h.settled()
    assert h.editor.publications == before


async def test_shutting_down_ends_what_runs() -> None:
    h = Harness()
    h.open(MODEL)
    run = await h.runner.next()
    await h.session.shutdown()
    assert run.cancelled and h.runner.closed == 1


async def test_a_program_that_ran_eagerly_replaces_what_was_known() -> None:
    h = await checked()
    h.edit(EDITED)
    h.save()
    (await h.runner.next()).finish(status=Status.EAGER, message="Dynamo skipped everything.")
    snapshot = await h.settled()
    (view,) = snapshot.targets_in("/w/model.py")
    assert view.good is not None and view.good.report.status is Status.EAGER
    assert h.editor.messages("/w/model.py") == []
