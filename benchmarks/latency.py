"""How long somebody who edits a model waits for an answer, against what people do today.

    python benchmarks/latency.py [--device cpu] [--repeat 20] [--only start,breaks,kernels]

It drives the real server over stdio as an editor does: open, change, save, and wait for what the editor would show.
Everything is measured in one run on one machine; compare the columns, not two runs.  Times are wall times in
milliseconds, so the machine should be quiet: its load is printed.  It must be run by the interpreter that has torch and
Inductoscope; what people do today is run the script again with `TORCH_LOGS`, or with `TORCH_TRACE` and `tlparse` where
that is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from latency_tools import processes, programs
from latency_tools.client import Client, server
from run_cost import EXAMPLES, machine

MODEL, CLASS, HOVER_LINE = "gpt_block.py", "GPTBlock", 71
IDLE_S = 5.0


@dataclass(frozen=True)
class Options:
    """What is measured: on which device, how often, and in which folder."""

    device: str
    repeat: int
    folder: Path

    def settings(self, rung: str) -> dict[str, Any]:
        """The settings of the server."""
        return {"interpreter": [sys.executable], "device": self.device, "rung": rung, "run": "onSave"}

    def workspace(self, name: str) -> Path:
        """An empty folder of that name."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    @property
    def caches(self) -> Path:
        """Where the server keeps things on disk: nothing of the user's own."""
        return self.folder / "caches"


@dataclass
class Table:
    """Rows of samples in milliseconds, and lines of other figures."""

    today: dict[str, float] = field(default_factory=dict)

    def row(self, name: str, samples: Sequence[float], against: str | None = None) -> None:
        """Print one row; `against` names what people do today."""
        median, high = statistics.median(samples) * 1000, percentile(samples, 95) * 1000
        base = self.today.get(against or "")
        ratio = f"{base * 1000 / median:9.1f}x" if base is not None and median > 0 else f"{'-':>10}"
        print(f"{name:<44} {len(samples):>4} {median:>10.1f} {high:>10.1f} {ratio}  {against or ''}", flush=True)


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least so many percent of them do not exceed."""
    return sorted(samples)[max(0, math.ceil(len(samples) * percent / 100) - 1)]


def today(options: Options, table: Table) -> None:
    """Run the script again, as people do."""
    script = options.workspace("today") / MODEL
    shutil.copy(EXAMPLES / MODEL, script)
    trace = options.folder / "trace"
    ways: dict[str, dict[str, str]] = {
        "TORCH_LOGS=graph_breaks,recompiles": {"TORCH_LOGS": "graph_breaks,recompiles"},
        "TORCH_LOGS=output_code": {"TORCH_LOGS": "output_code"},
        "TORCH_TRACE": {"TORCH_TRACE": str(trace)},
    }
    for name, variables in ways.items():
        samples = [_rerun(script, variables) for _ in range(max(1, options.repeat // 5))]
        table.today[name] = statistics.median(samples)
        table.row(f"today: python {MODEL} with {name}", samples)
    tlparse = shutil.which("tlparse")
    if tlparse is None:
        print("today: tlparse is not installed", flush=True)
        return
    log = max(trace.glob("*.log"))
    begun = time.perf_counter()
    subprocess.run([tlparse, str(log), "-o", str(options.folder / "tlparse"), "--no-browser"], check=True)
    table.today["TORCH_TRACE"] += time.perf_counter() - begun


def _rerun(script: Path, variables: dict[str, str]) -> float:
    caches = tempfile.mkdtemp(dir=script.parent)  # as after an edit: nothing of this program is in the caches
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **variables, "TORCHINDUCTOR_CACHE_DIR": caches},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begun


async def start(options: Options, table: Table) -> None:
    """From starting the server to its answer to `initialize`."""
    folder = options.workspace("start")
    samples = []
    for _ in range(options.repeat):
        begun = time.perf_counter()
        async with server(folder, options.caches) as client:
            await client.initialize(options.settings("capture"))
            samples.append(time.perf_counter() - begun)
    table.row("server start", samples)


async def breaks(options: Options, table: Table) -> None:
    """From a save to the graph break that the edit makes or mends, on screen."""
    await _edits(options, table, "edit to graph breaks", "lower", "TORCH_LOGS=graph_breaks,recompiles", _shown)


async def kernels(options: Options, table: Table) -> None:
    """From a save to all kernels."""
    await _edits(options, table, "edit to kernels", "lower", "TORCH_LOGS=output_code", _settled)


async def resources(options: Options, table: Table) -> None:
    """From a save to registers and shared memory of all kernels (simulated GPUs)."""
    await _edits(options, table, "edit to resources", "assemble", "TORCH_TRACE", _settled)


Edit = Callable[[int], str]
"""The text after an edit of that number."""

Answer = Callable[[Client, str, Edit, int], Awaitable[float]]
"""Makes an edit and waits for its answer; the seconds that took."""


async def _edits(options: Options, table: Table, name: str, rung: str, against: str, answer: Answer) -> None:
    folder = options.workspace(rung)
    text = programs.with_anchor((EXAMPLES / MODEL).read_text(encoding="utf-8"), CLASS)
    (folder / MODEL).write_text(text)

    def edit(number: int) -> str:
        return programs.numbered(text, number)

    async with server(folder, options.caches) as client:
        await client.initialize(options.settings(rung))
        await client.open(MODEL)
        await _warm(client, MODEL, edit)
        samples = [await answer(client, MODEL, edit, 100 + 2 * number) for number in range(options.repeat)]
    table.row(name, samples, against)


async def _warm(client: Client, name: str, edit: Edit, rounds: int = 3) -> None:
    """Edits until what the server keeps ready is ready."""
    await client.settled(name)
    for number in range(1, 1 + rounds):
        await client.save(name, edit(number))
        await client.settled(name)


async def _shown(client: Client, name: str, edit: Edit, number: int) -> float:
    """Until a break is shown that a text without it (`number`, which is even) gets by an edit."""
    await client.save(name, edit(number))
    await client.settled(name)
    text, words = edit(number + 1), f'print("pass {number + 1}")'
    arrived = client.when_shown(name, lambda found: any(words in _line(text, one) for one in found))
    begun = await client.save(name, text)
    seconds = await arrived - begun
    await client.settled(name)
    return seconds


def _line(text: str, diagnostic: dict[str, Any]) -> str:
    lines = text.splitlines()
    number = diagnostic["range"]["start"]["line"]
    return lines[number] if number < len(lines) else ""


async def _settled(client: Client, name: str, edit: Edit, number: int) -> float:
    begun = await client.save(name, edit(number))
    await client.settled(name)
    return time.perf_counter() - begun


async def comment(options: Options, table: Table) -> None:
    """From a save of a text that differs in a comment to everything being as it should."""
    folder = options.workspace("comment")
    text = (EXAMPLES / MODEL).read_text(encoding="utf-8")
    (folder / MODEL).write_text(text)
    async with server(folder, options.caches) as client:
        await client.initialize(options.settings("lower"))
        await client.open(MODEL)
        await client.settled(MODEL)

        def edit(number: int) -> str:
            return f"{text}# note {number}\n"

        samples = [await _settled(client, MODEL, edit, number) for number in range(options.repeat)]
    table.row("comment-only edit", samples, "TORCH_LOGS=output_code")


async def helper(options: Options, table: Table) -> None:
    """From a save of a module three imports away to all kernels of the model."""
    folder = options.workspace("helper")
    programs.write_chain(folder)
    await _of_helper(options, table, folder, "edit three imports away")


async def many(options: Options, table: Table) -> None:
    """The same in a workspace of thousands of files."""
    folder = options.workspace("many")
    programs.write_many(folder)
    await _of_helper(options, table, folder, f"the same among {programs.MANY_FILES} files")


async def _of_helper(options: Options, table: Table, folder: Path, name: str) -> None:
    async with server(folder, options.caches) as client:
        begun = time.perf_counter()
        await client.initialize(options.settings("lower"))
        await client.open("model.py")
        await client.open("far.py")
        await client.settled("model.py")
        first = time.perf_counter() - begun
        samples = []
        for number in range(1, 4 + options.repeat):
            begun = await client.save("far.py", programs.far(number))
            await client.settled("far.py")
            await client.settled("model.py")
            samples.append(time.perf_counter() - begun)
    table.row(f"{name}: first answer", [first])
    table.row(name, samples[3:], "TORCH_LOGS=output_code")


async def one_graph(options: Options, table: Table) -> None:
    """From a save that changes one of four graphs to all kernels."""
    folder = options.workspace("four")
    (folder / "model.py").write_text(programs.four_graphs(0))
    async with server(folder, options.caches) as client:
        await client.initialize(options.settings("lower"))
        await client.open("model.py")
        await _warm(client, "model.py", programs.four_graphs)
        edits = range(10, 10 + options.repeat)
        samples = [await _settled(client, "model.py", programs.four_graphs, number) for number in edits]
    table.row("edit that changes one of four graphs", samples, "TORCH_LOGS=output_code")


async def hover(options: Options, table: Table) -> None:
    """Hovers while the model is compiled."""
    folder = options.workspace("hover")
    text = programs.with_anchor((EXAMPLES / MODEL).read_text(encoding="utf-8"), CLASS)
    (folder / MODEL).write_text(text)
    samples: list[float] = []
    async with server(folder, options.caches) as client:
        await client.initialize(options.settings("lower"))
        await client.open(MODEL)
        await client.settled(MODEL)
        for number in range(1, 1 + max(2, options.repeat // 4)):
            await client.save(MODEL, programs.numbered(text, number))
            run = asyncio.ensure_future(client.settled(MODEL))
            while not run.done():
                samples.append(await client.hover(MODEL, HOVER_LINE))
                await asyncio.sleep(0.01)
    table.row("hover during a compile", samples)
    print(f"{'':<44}      99th percentile {percentile(samples, 99) * 1000:.1f} ms", flush=True)


async def idle(options: Options, table: Table) -> None:
    """What the server and its warm processes use while nothing happens."""
    folder = options.workspace("idle")
    text = programs.with_anchor((EXAMPLES / MODEL).read_text(encoding="utf-8"), CLASS)
    (folder / MODEL).write_text(text)
    async with server(folder, options.caches) as client:
        await client.initialize(options.settings("lower"))
        await client.open(MODEL)
        await _warm(client, MODEL, lambda number: programs.numbered(text, number))
        share = await asyncio.to_thread(processes.idle_share, client.pid, IDLE_S)
        print(f"idle: {share * 100:.2f} % of a core in {IDLE_S:g} s", flush=True)
        waiting = processes.tree(client.pid)
        for number, pid in enumerate(waiting):
            resident, own = processes.memory_mib(pid)
            who = "server" if number == 0 else f"warm process {number}"
            print(f"memory: {who}: {own:.0f} MiB, shared pages counted once ({resident:.0f} MiB resident)", flush=True)
        await client.save(MODEL, programs.numbered(text, 51))
        run = asyncio.ensure_future(client.settled(MODEL))
        most = 0.0
        while not run.done():
            for pid in set(processes.tree(client.pid)) - set(waiting):
                with_run = _memory_of_run(pid)
                most = max(most, with_run)
            await asyncio.sleep(0.05)
        print(f"memory: a run: {most:.0f} MiB at most, shared pages counted once", flush=True)


def _memory_of_run(pid: int) -> float:
    try:
        return processes.memory_mib(pid)[1]
    except OSError:  # it has ended
        return 0.0


SCENARIOS: dict[str, Callable[[Options, Table], Awaitable[None]]] = {
    "start": start,
    "breaks": breaks,
    "kernels": kernels,
    "resources": resources,
    "comment": comment,
    "helper": helper,
    "one-graph": one_graph,
    "hover": hover,
    "idle": idle,
    "many": many,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    arguments = _arguments(argv)
    print(machine())
    print(f"device {arguments.device}\n")
    print(f"{'':<44} {'n':>4} {'median ms':>10} {'95 % ms':>10} {'faster':>10}")
    with tempfile.TemporaryDirectory(prefix="latency-") as folder:
        options, table = Options(arguments.device, arguments.repeat, Path(folder)), Table()
        if arguments.today:
            today(options, table)
        for name in arguments.only:
            asyncio.run(SCENARIOS[name](options, table))  # type: ignore[arg-type]
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Milliseconds from an edit to its answer.")
    parser.add_argument("--device", default="cpu", help="cpu or sim:NAME (resources need the latter)")
    parser.add_argument("--repeat", type=int, default=20, help="samples of each row (default 20)")
    parser.add_argument("--only", type=_names, default=tuple(SCENARIOS), help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--no-today", dest="today", action="store_false", help="leave out what people do today")
    return parser.parse_args(argv)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no scenario {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
