#!/usr/bin/env python3
"""How true the simulated GPU is: the same programs on a real card and on a simulated one, compared.

    fidelity.py real OUT.json                      on a machine with a GPU; times kernels and library calls
    fidelity.py sim OUT.json --device H200         anywhere; --assemble also builds every kernel
    fidelity.py diff REAL.json... --with SIM.json...

`--kernelbench FOLDER` adds the files of a KernelBench checkout; `--shard 0/4` takes every fourth program.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fidelity_tools import compare, record


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of `diff` is 1 when a program differs, of the others when one raised."""
    arguments = _arguments(argv)
    if arguments.side == "diff":
        return diff(arguments.files, arguments.other)
    with tempfile.TemporaryDirectory(prefix="fidelity-") as caches:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = caches
        return _record(arguments)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare a simulated GPU with a real one.")
    sides = parser.add_subparsers(dest="side", required=True)
    for name in ("real", "sim"):
        side = sides.add_parser(name)
        side.add_argument("out", type=Path)
        side.add_argument("--only", help="programs whose names contain one of these, separated by commas")
        side.add_argument("--shard", default="0/1", help="I/N: every N-th program, from the I-th")
        side.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this long")
        side.add_argument("--kernelbench", type=Path, metavar="FOLDER")
        side.add_argument("--texts", action="store_true", help="also write the texts behind the hashes")
        if name == "sim":
            side.add_argument("--device", default="H200", help="a known GPU, or a device file with a recording")
            side.add_argument("--assemble", action="store_true")
        else:
            side.add_argument("--turn", type=Path, help="a file shared by shards that run at once on one card")
            decisions = (
                "also keep what torch decides by timing, as a device file for the other side (needs the product)"
            )
            side.add_argument("--decisions", type=Path, metavar="FILE", help=decisions)
    both = sides.add_parser("diff")
    both.add_argument("files", nargs="+", type=Path)
    both.add_argument("--with", dest="other", nargs="+", type=Path, required=True)
    return parser.parse_args(argv)


def _record(arguments: argparse.Namespace) -> int:
    side = _side(arguments)
    from fidelity_tools import running

    found = list(running.programs())
    if arguments.kernelbench:
        found += running.kernelbench(arguments.kernelbench)
    wanted = (arguments.only or "").split(",")
    at, of = map(int, arguments.shard.split("/"))
    texts, begun = record.Texts(), time.perf_counter()
    programs: dict[str, record.ProgramRecord] = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    keep = getattr(arguments, "decisions", None)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: record.write(arguments.out, side.made(), programs, texts if arguments.texts else None))
        if keep is not None:
            from fidelity_tools.decisions import recorded_into

            stack.enter_context(recorded_into(keep))
        for group, name, make in [one for one in found if any(part in one[1] for part in wanted)][at::of]:
            if time.perf_counter() - begun > arguments.seconds:
                print(f"out of time before {name}", flush=True)
                break
            programs[name] = one = side.record(group, make, texts)
            print(f"{name:44s} {len(one.kernels):3d} kernels {one.seconds:6.2f} s  {one.error or ''}", flush=True)
    return int(any(one.error for one in programs.values()))


def _side(arguments: argparse.Namespace) -> Any:
    """The side that was asked for, with torch set up the same way on both."""
    import torch
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    inductor.benchmark_kernel = True  # kernels carry what it takes to time them: part of the text on both sides
    inductor.fx_graph_cache = functorch.enable_autograd_cache = False
    for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):
        if hasattr(inductor, name):
            setattr(inductor, name, False)
    torch._dynamo.config.recompile_limit = 64
    if arguments.side == "real":
        from fidelity_tools.real import RealSide

        return RealSide(arguments.turn or Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "turn")
    from fidelity_tools.simulated import SimulatedSide

    return SimulatedSide(arguments.device, assemble=arguments.assemble)


def diff(first: Sequence[Path], second: Sequence[Path]) -> int:
    """Print what is the same and what is not."""
    (made, one), (other_made, other) = record.read(first), record.read(second)
    verdict = compare.compare(one, other)
    for side in (made, other_made):
        print(", ".join(f"{key} {value}" for key, value in side.items()))
    for label in ("programs", "kernels", "wrappers", "calls", "values", "resources"):
        same, total = getattr(verdict, label)
        print(f"{label:10s} {same} of {total} the same")
    for difference in verdict.differences:
        print(f"  {difference.program}: {'; '.join(difference.what)}")
    if verdict.only_one_side:
        print(f"on one side only, not judged: {len(verdict.only_one_side)} programs")
    for label, pairs in (("kernel", compare.kernel_times(one, other)), ("library", compare.library_times(one, other))):
        if times := compare.accuracy(pairs):
            print(f"predicted {label} times: {times}")
    return int(bool(verdict.differences))


if __name__ == "__main__":
    sys.exit(main())
