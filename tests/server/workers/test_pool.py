"""The pool against a fake worker: every way in which a run can end."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from inductoscope.protocol.messages import FailureKind, Hello, LogLine, Message, Progress, RungDone, Target, TargetKind
from inductoscope.protocol.report import Finding, Rung, Severity, Span, Status
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerPool, process
from support.fake_worker import Script

TARGET = Target("/project/model.py", "Model.forward", 7, TargetKind.MODULE_CLASS, "Model")
BREAK = Finding("graph-break", Severity.WARNING, "/project/model.py", 9, 4, 9, 9, "Dynamo stops here", Rung.CAPTURE)


def request(**changes: object) -> RunRequest:
    return RunRequest(TARGET, "cpu", Rung.LOWER, **{"timeout_s": 60.0, **changes})  # type: ignore[arg-type]


async def play(script: Script, events: list[Message] | None = None, **changes: object) -> RunOutcome:
    pool = WorkerPool("python", spare=Spare.NONE, command=script.command())
    try:
        return await pool.run(request(**changes), (events if events is not None else []).append)
    finally:
        await pool.close()


def only_finding(outcome: RunOutcome) -> Finding:
    (finding,) = outcome.report.findings
    return finding


async def gone(pid: int) -> bool:
    """Wait for the end of a process that was killed (a zombie that nobody reaped has ended)."""
    try:
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0)
    except psutil.NoSuchProcess:
        pass
    return True


async def test_a_finished_run_gives_the_worker_report_and_streams_events() -> None:
    events: list[Message] = []
    script = Script().hello().take_run().progress("capturing").log("note").rung_done().done(message="fine")
    outcome = await play(script, events)
    assert outcome.failure is None
    assert outcome.hello is not None and outcome.hello.torch == "2.13.0"
    assert (outcome.report.status, outcome.report.message) == (Status.COMPILED, "fine")
    assert [type(event) for event in events] == [Progress, LogLine, RungDone]


@pytest.mark.parametrize(
    ("name", "why"),
    [("SIGSEGV", "segmentation fault"), ("SIGABRT", "abort"), ("SIGKILL", "memory ran out"), ("SIGFPE", "arithmetic")],
)
async def test_a_fatal_signal_is_named_and_explained(name: str, why: str) -> None:
    outcome = await play(Script().hello().take_run().say("loading libbad.so").signal(name))
    finding = only_finding(outcome)
    assert outcome.report.status is Status.FAILED
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.CRASH
    assert finding.code == "worker-crash" and finding.severity is Severity.ERROR
    assert f"Model.forward was killed by signal {name}" in finding.message
    assert why in finding.message
    assert finding.message.endswith("Its last output was: loading libbad.so")


async def test_a_fatal_signal_is_placed_on_the_user_line_of_the_fault_handler() -> None:
    # The fake worker's own lines are the user code here: the innermost is where it signals itself.
    finding = only_finding(await play(Script().hello().take_run().signal("SIGSEGV")))
    assert finding.file.endswith("fake_worker.py")
    source = Path(finding.file).read_text().splitlines()
    assert "os.kill" in source[finding.line - 1]
    assert f"at line {finding.line} of {finding.file}" in finding.message


async def test_a_process_that_exits_by_itself_is_reported_with_its_code() -> None:
    finding = only_finding(await play(Script().hello().take_run().progress("importing model.py").exit(3)))
    assert (finding.code, finding.file, finding.line) == ("worker-crash", TARGET.file, TARGET.line)
    assert "ended with exit code 3 before it was done" in finding.message
    assert "while importing model.py" in finding.message


async def test_a_crash_keeps_what_was_found_before() -> None:
    script = Script().hello().take_run().rung_done(torch=1).finding(BREAK).exit(1)
    outcome = await play(script)
    assert [finding.code for finding in outcome.report.findings] == ["graph-break", "worker-crash"]
    assert outcome.report.status is Status.FAILED


async def test_a_hanging_run_is_stopped_and_says_where_it_hung(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = Script().hello().take_run().write_pid(pid_file).progress("calling forward").hang()
    outcome = await play(script, timeout_s=0.3)
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.TIMEOUT
    message = only_finding(outcome).message
    assert "took more than 0.3 s and was stopped while calling forward" in message
    assert "--timeout" in message
    assert await gone(int(pid_file.read_text()))


async def test_a_run_over_its_memory_is_stopped(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = Script().hello().take_run().write_pid(pid_file).touch_memory(300 << 20).hang()
    outcome = await play(script, memory_bytes=200 << 20)
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.MEMORY
    assert "over the limit of 0.2 GiB" in only_finding(outcome).message
    assert await gone(int(pid_file.read_text()))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff" * 64, id="length over the limit"),
        pytest.param(b"\0\0\0\5hello", id="no JSON"),
        pytest.param(b"\0\0\0\2{}", id="no message"),
        pytest.param(b'\0\0\0\x1e{"type":"Unheard","body":null}', id="unknown tag"),
    ],
)
async def test_garbage_on_the_channel_is_a_failure_of_the_run(data: bytes) -> None:
    outcome = await play(Script().hello().take_run().raw(data).hang())
    assert "sent something that is not a message" in only_finding(outcome).message


async def test_a_worker_that_closes_the_channel_and_goes_on_is_given_up() -> None:
    outcome = await play(Script().hello().take_run().close_channel().hang())
    assert "closed its connection to Inductoscope" in only_finding(outcome).message


async def test_a_child_that_holds_the_channel_does_not_hide_a_crash(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    outcome = await play(Script().hello().take_run().fork_hanging(pid_file).exit(5))
    assert "exit code 5" in only_finding(outcome).message
    assert await gone(int(pid_file.read_text()))


async def test_a_flood_of_output_without_line_ends_does_no_harm() -> None:
    outcome = await play(Script().hello().take_run().flood(5_000_000).done())
    assert outcome.report.status is Status.COMPILED


async def test_a_failure_from_the_worker_is_put_at_its_place() -> None:
    place = Span("/project/helper.py", 3, 4, 3, 10)
    script = Script().hello().take_run().failed(FailureKind.IMPORT, "helper.py has no name x.", place)
    outcome = await play(script)
    finding = only_finding(outcome)
    assert (finding.code, finding.file, finding.line, finding.column) == ("run-error", place.file, 3, 4)
    assert outcome.report.message == finding.message == "helper.py has no name x."


async def test_missing_inputs_are_a_hint_and_a_status_of_their_own() -> None:
    outcome = await play(Script().hello().take_run().failed(FailureKind.NO_INPUTS, "Add get_inputs()."))
    assert outcome.report.status is Status.NO_INPUTS
    assert only_finding(outcome).code == "no-inputs"


async def test_an_interpreter_without_torch_is_no_matter_of_the_file() -> None:
    outcome = await play(Script().hello(problem="torch is not installed there.").wait_for_end_of_input())
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.NO_TORCH
    assert (outcome.report.status, outcome.report.findings) == (Status.NOT_RUN, ())
    assert outcome.report.message == "torch is not installed there."


async def test_an_interpreter_that_does_not_exist_is_a_sentence() -> None:
    pool = WorkerPool("/no/such/python", spare=Spare.NONE)
    outcome = await pool.run(request(), [].append)
    await pool.close()
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.NO_INTERPRETER
    assert outcome.failure.message == (
        "The Python interpreter /no/such/python cannot be started: No such file or directory. "
        "Choose another one (--python, or the settings)."
    )


async def test_a_worker_of_another_protocol_version_is_refused() -> None:
    outcome = await play(Script().hello(protocol=99).wait_for_end_of_input())
    assert "it speaks version 99, not 1" in (outcome.report.message or "")


async def test_a_worker_that_dies_at_its_start_says_its_last_words() -> None:
    outcome = await play(Script().say("ImportError: libcudart.so").exit(1))
    assert "ended with exit code 1 while it started" in (outcome.report.message or "")
    assert "ImportError: libcudart.so" in (outcome.report.message or "")


async def test_cancelling_a_run_kills_the_worker_and_its_children(tmp_path: Path) -> None:
    worker_pid, child_pid = tmp_path / "worker", tmp_path / "child"
    script = Script().hello().take_run().write_pid(worker_pid).fork_hanging(child_pid).progress("on").hang()
    pool = WorkerPool("python", spare=Spare.NONE, command=script.command())
    started = asyncio.Event()
    task = asyncio.create_task(pool.run(request(), lambda _: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await pool.close()
    assert await gone(int(worker_pid.read_text()))
    assert await gone(int(child_pid.read_text()))


async def test_an_error_in_the_callback_ends_the_worker_and_reaches_the_caller(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = Script().hello().take_run().write_pid(pid_file).progress("on").hang()

    def fail(_: Message) -> None:
        raise BrokenPipeError("nobody reads")

    pool = WorkerPool("python", spare=Spare.NONE, command=script.command())
    with pytest.raises(BrokenPipeError):
        await pool.run(request(), fail)
    await pool.close()
    assert await gone(int(pid_file.read_text()))


async def test_a_spare_is_used_by_the_next_run_and_replaced() -> None:
    pool = WorkerPool("python", command=Script().hello().take_run().report_environment().command())
    spare = await pool.prepare(str(Path.cwd()))
    assert isinstance(spare, Hello)
    first = await pool.run(request(cwd=str(Path.cwd())), [].append)
    assert first.report.message == f"{spare.pid} {Path.cwd()!s}"
    second = await pool.run(request(cwd=str(Path.cwd())), [].append)
    assert second.hello is not None and second.hello.pid != spare.pid
    await pool.close()


async def test_a_spare_in_another_folder_is_not_used(tmp_path: Path) -> None:
    pool = WorkerPool("python", command=Script().hello().take_run().report_environment().command())
    spare = await pool.prepare(str(Path.cwd()))
    assert isinstance(spare, Hello)
    outcome = await pool.run(request(cwd=str(tmp_path)), [].append)
    assert (outcome.report.message or "").split() == [str(outcome.hello and outcome.hello.pid), str(tmp_path)]
    assert await gone(spare.pid)
    await pool.close()


async def test_a_spare_that_died_while_waiting_is_replaced() -> None:
    pool = WorkerPool("python", command=Script().hello().take_run().report_environment().command())
    spare = await pool.prepare()
    assert isinstance(spare, Hello)
    psutil.Process(spare.pid).kill()
    again = await pool.prepare()
    while isinstance(again, Hello) and again.pid == spare.pid:  # until the loop has seen the death
        await asyncio.sleep(0)
        again = await pool.prepare()
    assert isinstance(again, Hello)
    await pool.close()


async def test_close_ends_the_spare_and_refuses_runs() -> None:
    pool = WorkerPool("python", command=Script().hello().take_run().done().command())
    spare = await pool.prepare()
    assert isinstance(spare, Hello)
    await pool.close()
    assert await gone(spare.pid)
    outcome = await pool.run(request(), [].append)
    assert "shut down" in (outcome.report.message or "")


async def test_no_more_runs_at_once_than_allowed() -> None:
    script = Script().hello().take_run().progress("on").done()
    pool = WorkerPool("python", max_running=2, spare=Spare.NONE, command=script.command())
    outcomes = await asyncio.gather(*(pool.run(request(), [].append) for _ in range(4)))
    await pool.close()
    assert [outcome.report.status for outcome in outcomes] == [Status.COMPILED] * 4
    assert len({outcome.hello.pid for outcome in outcomes if outcome.hello}) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found through /proc")
@pytest.mark.parametrize("end", ["done", "crash"])
async def test_a_daemon_of_the_program_does_not_outlive_its_run(tmp_path: Path, end: str) -> None:
    script = Script().hello().take_run().start_daemon(tmp_path / "pid")
    await play(script.done() if end == "done" else script.exit(7))
    assert await gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("end", ["crash", "failure", "hang"])
async def test_the_folder_of_a_worker_is_removed_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = Script().hello().take_run().make_folder()
    ends = {"crash": script.signal, "failure": script.failed, "hang": script.hang}
    arguments = {"crash": ("SIGKILL",), "failure": (FailureKind.INTERNAL, "It failed."), "hang": ()}
    await play(ends[end](*arguments[end]), timeout_s=1.0 if end == "hang" else 60.0)
    assert list(tmp_path.iterdir()) == []


async def test_a_worker_is_ended_at_once_when_there_is_no_time_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    worker = await process.start(Script().make_folder().hello().hang().command(), None, None)
    await worker.receive()
    ending = asyncio.create_task(worker.kill())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert await gone(worker.pid)
    assert list(tmp_path.iterdir()) == []


async def test_the_worker_of_a_run_that_follows_starts_while_the_one_before_is_at_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "inductoscope.pool")
    pool = WorkerPool(
        "python", spare=Spare.NONE, command=Script().hello().take_run().hang().command(), more=lambda: True
    )
    first = asyncio.create_task(pool.run(request(), [].append))
    while caplog.text.count("worker started") < 2:
        assert not first.done()
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await pool.close()


async def test_no_worker_is_started_for_runs_that_do_not_come(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "inductoscope.pool")
    follows = [True, False]
    command = Script().hello().take_run().done().command()
    pool = WorkerPool("python", spare=Spare.NONE, command=command, more=lambda: follows.pop(0))
    outcomes = [await pool.run(request(), [].append) for _ in range(2)]
    await pool.close()
    assert [outcome.failure for outcome in outcomes] == [None, None]
    assert caplog.text.count("worker started") == 2
