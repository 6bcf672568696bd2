from __future__ import annotations

import asyncio

from inductoscope.server.scheduler import Job, Scheduler


class Bench:
    """Jobs that end when the test says so."""

    def __init__(self, limit: int = 1) -> None:
        self.log: list[str] = []
        self.ends: dict[int, asyncio.Event] = {}
        self.changes: list[str] = []
        self.scheduler: Scheduler[str] = Scheduler(self.work, self.changes.append, limit=limit)

    async def work(self, job: Job[str]) -> None:
        self.log.append(f"start {job.key} {job.cause}")
        end = self.ends.setdefault(job.generation, asyncio.Event())
        try:
            await end.wait()
            self.log.append(f"end {job.key} {job.cause}")
        except asyncio.CancelledError:
            self.log.append(f"cancel {job.key} {job.cause}")
            raise

    def end(self, generation: int) -> None:
        self.ends.setdefault(generation, asyncio.Event()).set()

    async def turn(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_one_runs_and_the_rest_wait_in_order() -> None:
    bench = Bench()
    for key in ("a", "b", "c"):
        bench.scheduler.request(key, "open")
    await bench.turn()
    assert bench.log == ["start a open"]
    bench.end(1)
    await bench.turn()
    assert bench.log == ["start a open", "end a open", "start b open"]


async def test_a_newer_request_replaces_the_pending_one() -> None:
    bench = Bench()
    bench.scheduler.request("a", "open")
    bench.scheduler.request("b", "first")
    bench.scheduler.request("b", "second")
    bench.end(1)
    await bench.turn()
    assert bench.log == ["start a open", "end a open", "start b second"]


async def test_a_newer_request_cancels_the_running_one_and_waits_for_its_end() -> None:
    bench = Bench()
    bench.scheduler.request("a", "first")
    await bench.turn()
    bench.scheduler.request("a", "second")
    assert bench.scheduler.running("a") is None and bench.scheduler.pending("a") is not None
    await bench.turn()
    assert bench.log == ["start a first", "cancel a first", "start a second"]


async def test_a_cancelled_key_has_no_job() -> None:
    bench = Bench()
    bench.scheduler.request("a", "run")
    bench.scheduler.request("b", "wait")
    await bench.turn()
    bench.scheduler.cancel("b", "closed")
    bench.scheduler.cancel("a", "closed")
    await bench.turn()
    assert bench.log == ["start a run", "cancel a run"]
    assert bench.scheduler.keys == ()


async def test_as_many_run_as_the_limit_says() -> None:
    bench = Bench(limit=2)
    for key in ("a", "b", "c"):
        bench.scheduler.request(key, "open")
    await bench.turn()
    assert bench.log == ["start a open", "start b open"]


async def test_a_job_that_fails_makes_room_for_the_next() -> None:
    async def work(job: Job[str]) -> None:
        done.append(job.key)
        if job.key == "a":
            raise RuntimeError("broken")

    done: list[str] = []
    scheduler: Scheduler[str] = Scheduler(work, lambda key: None)
    scheduler.request("a", "open")
    scheduler.request("b", "open")
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == ["a", "b"]
    assert scheduler.keys == ()


async def test_closing_ends_all_and_starts_nothing() -> None:
    bench = Bench()
    bench.scheduler.request("a", "run")
    bench.scheduler.request("b", "wait")
    await bench.turn()
    await bench.scheduler.close()
    assert bench.log == ["start a run", "cancel a run"]


async def test_every_change_of_a_key_is_told() -> None:
    bench = Bench()
    bench.scheduler.request("a", "run")
    await bench.turn()
    bench.end(1)
    await bench.turn()
    assert bench.changes == ["a", "a", "a"]  # requested, started, ended
