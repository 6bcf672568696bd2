"""`inductoscope sweep`: its options, and what it prints."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inductoscope.server.sweep.cluster import Done, Settings
    from inductoscope.server.sweep.points import Point

OK, UNCHECKED = 0, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="Python files, or folders to search")
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    inputs = "measure with these, such as x=f32[16, 128]; may be repeated"
    parser.add_argument("--inputs", action="append", default=[], metavar="INPUTS", help=inputs)
    parser.add_argument("--mode", default="", metavar="LIST", help="modes of torch.compile, with commas")
    devices = (
        "cpu, cuda, or cuda:TYPE for a GPU of Ray's accelerator type, such as cuda:H200; with commas (default cuda)"
    )
    parser.add_argument("--devices", default="cuda", metavar="LIST", help=devices)
    ray = "local starts Ray on this machine; else the address of a cluster, such as ray://head:10001"
    parser.add_argument("--ray", default="local", metavar="ADDRESS", help=ray)
    parser.add_argument("--backward", action="store_true", help="a call is a forward and a backward pass")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="timed calls of each side (default 2)")
    parser.add_argument("--python", metavar="PYTHON", help="the interpreter on the nodes (default: that of Ray there)")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S", help="seconds a point may take")
    parser.add_argument("--json", action="store_true", help="print all results as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do the command; returns the exit status."""
    from inductoscope.server.planning import CheckError

    try:
        points, problems = _points(arguments)
        done = _measured(points, _settings(arguments))
    except CheckError as error:
        _complain(str(error))
        return UNCHECKED
    if arguments.json:
        _print_json(done)
    for problem in (*problems, *(one.problem for one in done if one.problem is not None)):
        _complain(problem)
    return UNCHECKED if problems or any(one.report is None for one in done) else OK


def _points(arguments: argparse.Namespace) -> tuple[tuple[Point, ...], list[str]]:
    from inductoscope.server import planning
    from inductoscope.server.bench.command import modes
    from inductoscope.server.sweep.points import points, where_of

    plan = planning.plan(planning.Options(tuple(arguments.paths), tuple(arguments.target)))
    wheres = tuple(where_of(text) for text in arguments.devices.split(",") if text.strip())
    found = points(plan.jobs, arguments.inputs, modes(arguments.mode), wheres)
    if not found and not plan.problems:
        raise planning.CheckError("There is nothing to measure: no target has inputs. Give some with --inputs.")
    return found, plan.problems


def _settings(arguments: argparse.Namespace) -> Settings:
    from inductoscope.protocol.bench import BenchOptions, Passes
    from inductoscope.server.planning import CheckError
    from inductoscope.server.sweep.cluster import Settings

    if not 0 < arguments.seconds < float("inf") or not arguments.timeout > 0:
        raise CheckError("--seconds and --timeout have to be numbers above 0.")
    bench = BenchOptions(passes=Passes.BOTH if arguments.backward else Passes.FORWARD)
    return Settings(arguments.ray, bench, arguments.seconds, arguments.timeout, arguments.python)


def _measured(points: Sequence[Point], settings: Settings) -> list[Done]:
    """Measure all, saying what is done, and keep the results in the history."""
    from dataclasses import replace

    from inductoscope.server import words
    from inductoscope.server.bench.remembering import remembered
    from inductoscope.server.sweep import cluster

    done: list[Done] = []
    for one in cluster.run(points, settings):
        report = None if one.report is None else asyncio.run(remembered(one.report, one.torch))
        done.append(replace(one, report=report))
        told = one.problem if report is None or report.benchmark is None else words.benchmark(report.benchmark)
        sys.stderr.write(f"{len(done)} of {len(points)}: {one.point.text}: {told}\n")
    return done


def _print_json(done: Sequence[Done]) -> None:
    from inductoscope.protocol import codec
    from inductoscope.server.paths import relative_files

    found = [
        {
            "point": one.point.text,
            "mode": one.point.mode,
            "device": one.point.where.text,
            "inputs": one.point.inputs,
            "torch": one.torch,
            "problem": one.problem,
            "target": None if one.report is None else relative_files(codec.to_json(one.report), Path.cwd()),
        }
        for one in done
    ]
    sys.stdout.write(json.dumps({"sweep": found}, indent=2, ensure_ascii=False) + "\n")


def _complain(sentence: str) -> None:
    sys.stderr.write(f"inductoscope: {sentence}\n")
