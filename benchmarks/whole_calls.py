#!/usr/bin/env python3
"""What one call of a program takes on a real card, compiled and eager: what predictions of whole calls are fitted to.

    whole_calls.py OUT.json [--only NAME,...] [--processes N] [--seconds S]

For each of the programs of `fidelity_programs` that are a function or a module, by inference or with a backward pass:
the time of a call in a row of calls, the time that the host takes to start one, what each kernel takes on the card
(CUPTI, in place, nothing flushed), and, eager, what each ATen operator takes there.  Plain torch; nothing of the
product takes part.  Processes take their times one by one and compile side by side.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fcntl
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

_ROUNDS, _LAUNCHES_WAITING = 5, 600
_MARK = "operator "


def main() -> int:
    """Measure, in as many processes as are asked for."""
    parser = argparse.ArgumentParser(description="Time whole calls on a real card, compiled and eager.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="programs whose names contain one of these, separated by commas")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this long")
    parser.add_argument("--shard", default="0/1", help=argparse.SUPPRESS)
    parser.add_argument("--turn", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.processes > 1:
        return _in_processes(arguments)
    with tempfile.TemporaryDirectory(prefix="whole-calls-") as caches:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = caches
        arguments.out.write_text(json.dumps(_measured(arguments), indent=1), encoding="utf-8")
    return 0


def _in_processes(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{index}.json" for index in range(arguments.processes)]
        own = [sys.executable, __file__, "--only", arguments.only, "--seconds", str(arguments.seconds)]
        own += ["--turn", str(Path(folder) / "turn")]
        running = [
            subprocess.Popen([*own, "--shard", f"{index}/{len(parts)}", str(part)]) for index, part in enumerate(parts)
        ]
        codes = [process.wait() for process in running]
        results = [json.loads(part.read_text(encoding="utf-8")) for part in parts if part.exists()]
    if results:
        programs = {name: found for result in results for name, found in result["programs"].items()}
        merged = {**results[0], "programs": dict(sorted(programs.items()))}
        arguments.out.write_text(json.dumps(merged, indent=1), encoding="utf-8")
    return max(codes)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    from fidelity_programs.kit import Use
    from fidelity_tools import running

    begun = time.perf_counter()
    wanted = arguments.only.split(",")
    at, of = map(int, arguments.shard.split("/"))
    makers = [(name, make) for _, name, make in running.programs() if any(part in name for part in wanted)]
    makers.sort(key=lambda one: hashlib.sha256(one[0].encode()).digest())  # some of each group, if time runs out
    programs: dict[str, Any] = {}
    for name, make in makers[at::of]:
        if time.perf_counter() - begun > arguments.seconds:
            break
        running.begin()
        try:
            prepared = make()
            if prepared.use is not Use.WHOLE:
                programs[name] = _program(prepared, arguments.turn)
        except Exception as error:
            programs[name] = {"error": running.in_one_line(error)}
        torch.cuda.empty_cache()
    host = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    made = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "host": host}
    return {"made": made, "programs": programs}


def _program(prepared: Any, turn: Path | None) -> dict[str, Any]:
    """Times of the forward pass, and where the program trains of forward and backward together."""
    import torch

    from fidelity_programs.kit import Use

    trains = prepared.use is Use.TRAINING
    result: dict[str, Any] = {"trains": trains}
    sides = {"eager": prepared.run, "compiled": torch.compile(prepared.run, **prepared.options)}
    calls: dict[str, Callable[[], object]] = {}
    for side, run in sides.items():
        calls[f"{side}_forward"] = _forward(run, prepared.args, trains)
        if trains:
            calls[f"{side}_both"] = _both(run, prepared.args)
    for call in calls.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    with _alone(turn):
        for name, call in calls.items():
            try:
                result[name] = {**_on_card(call), **_timed(call)}
            except Exception as error:
                result[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        result["operators"] = _operators(calls["eager_both" if trains else "eager_forward"])
    return result


def _forward(run: Callable[..., Any], args: tuple[Any, ...], trains: bool) -> Callable[[], object]:
    import torch

    def call() -> object:
        with torch.set_grad_enabled(trains):
            return run(*args)

    return call


def _both(run: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], object]:
    import torch

    with torch.no_grad():
        out = run(*args)
    given = torch.ones_like(out)

    def call() -> object:
        torch.autograd.backward([run(*args)], [given])
        return None

    return call


@contextlib.contextmanager
def _alone(turn: Path | None) -> Iterator[None]:
    if turn is None:
        yield
        return
    with turn.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _timed(call: Callable[[], object]) -> dict[str, float]:
    """Microseconds: a call in a row of calls, and until the host has started one while the card waits for it."""
    import torch

    call()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    one = time.perf_counter() - begun
    count = max(3, min(200, int(0.01 / max(one, 1e-6))))
    rows, hosts = [], []
    for _ in range(_ROUNDS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        rows.append((time.perf_counter() - begun) / count)
        begun = time.perf_counter()
        call()
        hosts.append(time.perf_counter() - begun)
    return {"row_us": statistics.median(rows) * 1e6, "host_us": statistics.median(hosts) * 1e6}


def _on_card(call: Callable[[], object]) -> dict[str, Any]:
    """What one call does on the card: microseconds, how many launches and copies, and each of them by name."""
    from torch.autograd import DeviceType

    times = 3
    events = _profiled(lambda: [call() for _ in range(times)])
    on_card = [one for one in events if one.device_type is DeviceType.CUDA and not one.is_user_annotation]
    by_name: dict[str, list[float]] = collections.defaultdict(list)
    for event in on_card:
        by_name[event.name].append(event.time_range.elapsed_us())
    return {
        "card_us": sum(map(sum, by_name.values())) / times,
        "launches": len(on_card) / times,
        "kernels": [[name[:120], len(us) / times, statistics.median(us)] for name, us in by_name.items()],
    }


def _profiled(call: Callable[[], object]) -> Any:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
        call()
        torch.cuda.synchronize()
    return profiler.events()


def _operators(call: Callable[[], object]) -> Any:
    """Each ATen operator that an eager call dispatches, with its tensors and what it does on the card."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    found: list[list[Any]] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with torch.profiler.record_function(f"{_MARK}{len(found)}"):
                result = func(*args, **(kwargs or {}))
            given, made = (_texts(tree_leaves(one)) for one in ((args, kwargs), result))
            found.append([str(func), given, made, 0.0, 0])
            return result

    def run() -> None:
        with Mode():
            call()

    try:
        events = _profiled(run)
        for event in events:
            owner = event
            while owner is not None and not owner.name.startswith(_MARK):
                owner = owner.cpu_parent
            for kernel in event.kernels if owner is not None else ():
                if kernel.name.startswith(_MARK):  # the card's own account of the mark
                    continue
                entry = found[int(owner.name.removeprefix(_MARK))]
                entry[3] += kernel.duration
                entry[4] += 1
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return found


def _texts(leaves: list[Any]) -> list[str]:
    import torch

    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return [f"{str(one.dtype).removeprefix('torch.')}{list(one.shape)}:{list(one.stride())}" for one in tensors]


if __name__ == "__main__":
    sys.exit(main())
