"""Each version's shapes are read alike: the exceptions, records, guards and limits that torch 2.11 to 2.15 made.

They were recorded with `record.py` from `programs/`, by running each version.  What differs between versions is torch's
own, and stands here by name.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from compat import record  # noqa: E402
from compat.recorded import FIXTURES, artifact_names, file_names, fixture, named, program  # noqa: E402
from inductoscope.compiler.capture.guard_facts import GuardLog  # noqa: E402
from inductoscope.compiler.capture.specialized import SpecializationLog  # noqa: E402
from inductoscope.compiler.compat import dynamo, dynamo_stacks, dynamo_trace, versions  # noqa: E402
from inductoscope.compiler.compat.dynamo_guards import GuardsEvent, Leaf  # noqa: E402
from inductoscope.compiler.usercode import Frame, UserCode  # noqa: E402
from inductoscope.protocol.torch_texts.breaks import outcome_of, read_breaks  # noqa: E402
from inductoscope.protocol.torch_texts.guards import family, read_reasons  # noqa: E402

MINORS = tuple(FIXTURES)
each_minor = pytest.mark.parametrize("minor", MINORS)

NOT_LED_TO = {
    # Replaced, so that the original is never called: what would start a compiler, record CUDA graphs or ask a cache.
    "torch:_TorchCompileInductorWrapper.__call__",
    "torch._inductor.cpp_builder:get_cpp_compiler",
    "torch._inductor.cpu_vec_isa:VecISA.check_build",
    "torch._inductor.codecache:CppPythonBindingsCodeCache.load_pybinding",
    "torch._inductor.codecache:FxGraphCachePickler.debug_lines",
    "torch._inductor.compile_fx:cudagraphify",
    "torch._inductor.output_code:maybe_handle_backward_generation",
    "torch._functorch._aot_autograd.autograd_cache:AOTAutogradCache.try_load",
    "torch._functorch._aot_autograd.autograd_cache:cache_dir",
    "torch._functorch.aot_autograd:should_use_local_autograd_cache",
    # Reasons against CUDA graphs that come up inside of what is replaced.
    "torch._inductor.cudagraph_utils:log_cudagraph_skip_and_bump_counter",
    "torch._inductor.output_code:log_cudagraph_skip_and_bump_counter",
    # Patterns that are replaced while a graph is lowered, and combined kernels: no program here has any.
    "torch._inductor.pattern_matcher:LoweringPatternEntry.apply",
    "torch._inductor.codegen.simd:SIMDScheduling.generate_combo_kernel_code",
}
"""Required points that recording does not see called, on any version."""

RESUMED, FUNCTION = "split", "whole-function-eager"
BREAKS = {
    "break_resumed": ("Failed to trace builtin operator", 11, RESUMED),
    "break_in_loop": ("Failed to trace builtin operator", 13, FUNCTION),
    "break_in_helper": ("Data-dependent branching", 10, RESUMED),
    "break_under_lock": ("Unsupported context manager", 14, FUNCTION),
    "recurrent": ("Attempted to wrap RNN, GRU, or LSTM", 15, FUNCTION),
}
BREAKS_OF_A_VERSION = {("2.15", "recurrent"): ("Unsupported function call (delayed)", 15, RESUMED)}
"""Kind, line and outcome of the break of each program, and where a version has it otherwise."""

FAMILIES = {
    "sizes_change": {"tensor 'x' size mismatch", "tensor 'x' dtype mismatch. expected Float, actual Double"},
    "values_change": {"how == 'S'", "self.steps == N"},
    "too_often": {"G['SEEN']['calls'] == 'S'"},
    "size_pinned": {"tensor 'x' size mismatch"},
}


def test_every_supported_minor_version_is_recorded() -> None:
    assert list(MINORS) == [versions.text(one.series) for one in versions.ADAPTERS]
    for minor in MINORS:
        assert fixture(minor)["torch"].startswith(f"{minor}.")


@each_minor
def test_every_kind_of_record_that_is_read_is_covered(minor: str) -> None:
    missing = record.RECORDS - set(artifact_names(minor))
    assert not missing


@each_minor
def test_all_programs_were_run_to_their_end(minor: str) -> None:
    names = {path.stem for path in record.PROGRAMS.glob("*.py")}
    assert set(fixture(minor)["programs"]) == names | {f"{name} on {record.GPU}" for name in record.SIMULATED}
    ends = {name: found["report"]["end"] for name, found in fixture(minor)["programs"].items()}
    assert set(ends.values()) == {"RunDone"}, ends
    assert not [note for found in fixture(minor)["programs"].values() for note in found["report"]["notes"]]


@each_minor
def test_every_part_of_torch_that_is_needed_is_there_and_used(minor: str) -> None:
    needed = {record.name(point) for point in record.every_point() if point.required}
    found = {name: state for name, state in fixture(minor)["points"].items() if name in needed}
    assert {name for name, state in found.items() if state == "absent"} == set()
    assert {name for name, state in found.items() if state == "present"} <= NOT_LED_TO


@each_minor
def test_frames_that_are_left_alone_are_told(minor: str) -> None:
    (skip,) = program(minor, "left_alone")["skips"]
    assert skip["function"] == "nothing"
    assert skip["reason"].startswith("Dynamo decided to skip the frame while tracing: No ops traced")
    (finding,) = program(minor, "left_alone")["report"]["findings"]
    assert "`nothing` was skipped" in finding["message"]


def test_ids_of_graph_breaks_are_the_same_in_all_versions() -> None:
    ids: dict[str, set[str | None]] = {}
    for minor in MINORS:
        for kind, identifier in fixture(minor)["graph_break_ids"].items():
            ids.setdefault(kind, set()).add(identifier)
    assert all(len(known) == 1 and None not in known for known in ids.values()), ids


def _expected_break(minor: str, name: str) -> tuple[str, int, str]:
    return BREAKS_OF_A_VERSION.get((minor, name), BREAKS[name])


@each_minor
@pytest.mark.parametrize("name", BREAKS)
def test_the_exception_behind_a_break_is_read(minor: str, name: str) -> None:
    kind, line, outcome = _expected_break(minor, name)
    told = program(minor, name)["breaks"]
    worst = told[-1]
    cause = read_breaks(worst["message"])[0]
    assert cause.kind == kind
    assert cause.explanation
    assert outcome in {outcome_of(one["reason"]).value for one in told}
    assert line in {frame[1] for frame in worst["stack"] if frame[0].startswith("<program>")}


@each_minor
@pytest.mark.parametrize("name", BREAKS)
def test_the_same_break_is_read_from_the_trace(minor: str, name: str) -> None:
    _, line, outcome = _expected_break(minor, name)
    events = [dynamo.told_break(one) for one in named(minor, name, "dynamo_graph_break_reason")]
    assert events
    assert all(event is not None for event in events)
    assert outcome in {outcome_of(event.reason).value for event in events if event}
    assert line in {frame.line for event in events if event for frame in event.stack}


@each_minor
@pytest.mark.parametrize("name", BREAKS)
def test_the_report_of_a_break_is_the_same_in_all_versions(minor: str, name: str) -> None:
    kind, line, outcome = _expected_break(minor, name)
    (finding,) = program(minor, name)["report"]["findings"]
    assert (finding["code"], finding["line"], finding["outcome"]) == ("graph-break", line, outcome)
    assert finding["id"] == fixture(minor)["graph_break_ids"][kind]
    assert kind in finding["message"]


@each_minor
def test_a_break_that_is_forbidden_is_an_error_on_its_line(minor: str) -> None:
    report = program(minor, "forbidden_break")["report"]
    assert [(one["code"], one["line"], one["id"]) for one in report["findings"]] == [("graph-break", 12, "GB0059")]
    assert report["status"] == "failed"


@each_minor
@pytest.mark.parametrize("name", FAMILIES)
def test_reasons_for_recompiling_are_read(minor: str, name: str) -> None:
    payloads = [one.payload for one in named(minor, name, "recompile_reasons")]
    reasons = [reason for payload in payloads for reason in read_reasons(payload)]
    assert {family(reason.guard) for reason in reasons} >= FAMILIES[name]
    assert all(reason.compile_id.startswith("0/") for reason in reasons)
    told = {one.get("guard_family") for one in program(minor, name)["report"]["findings"]}
    assert told >= FAMILIES[name]


@each_minor
def test_a_guard_on_a_value_names_the_line_that_made_it(minor: str) -> None:
    payloads = [one.payload for one in named(minor, "values_change", "recompile_reasons")]
    lines = {family(one.guard): one.stack[-1].line for payload in payloads for one in read_reasons(payload)}
    assert lines["how == 'S'"] == 15
    assert lines["self.steps == N"] == 17


@each_minor
def test_the_start_of_a_compilation_names_the_function(minor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._logging.structured, "INTERN_TABLE", file_names(minor, "break_in_helper"))
    places = [dynamo_trace.started_function(one) for one in named(minor, "break_in_helper", "dynamo_start")]
    found = {(place.function, place.line, place.resumed) for place in places if place}
    assert {("clipped", 15, False), ("positive", 9, False)} <= found
    assert any(resumed for _, _, resumed in found)


@each_minor
def test_a_size_that_a_line_pins_is_read(minor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._logging.structured, "INTERN_TABLE", file_names(minor, "size_pinned"))
    monkeypatch.setattr(UserCode, "is_user", lambda self, file: file.startswith("<program>"))
    log = SpecializationLog(UserCode())
    for one in named(minor, "size_pinned", "symbolic_shape_specialization"):
        log.meet(one)
    (pinned,) = log.specializations()
    assert (pinned.source, pinned.value, pinned.line) == ("x.size()[0]", "4", 11)


@each_minor
def test_the_limit_of_recompilations_is_read(minor: str) -> None:
    found: list[tuple[str, int, dynamo_stacks.CodePlace]] = []
    with dynamo_trace.recompile_limits(lambda *told: found.append(told)):
        for entry in program(minor, "too_often")["limits"]:
            record_ = logging.LogRecord("", logging.WARNING, "", 0, entry["msg"], tuple(entry["args"]), None)
            logging.getLogger("torch._dynamo.convert_frame").handle(record_)
    place = dynamo_stacks.CodePlace("<program>/too_often.py", 11, "counted")
    assert found == [("recompile_limit", 2, place)]


@each_minor
def test_times_of_a_compilation_are_where_they_are_read(minor: str) -> None:
    (metrics,) = named(minor, "inferred", "compilation_metrics")
    assert {"is_forward", "entire_frame_compile_time_s", "backend_compile_time_s"} <= set(metrics.fields)
    assert metrics.compile_id == "0/0"


@each_minor
def test_guards_are_told_by_kind(minor: str) -> None:
    kinds = {name: {(one.source, one.kind) for one in _guards(minor, name)} for name in ("values_change", "trained")}
    assert ("how", "value") in kinds["values_change"]
    assert {("x", "dtype"), ("x", "size"), ("x", "stride"), ("x", "requires-grad")} <= kinds["values_change"]
    assert ("torch", "global-state") in kinds["trained"]


@each_minor
def test_an_operator_without_a_shape_function_is_an_error_on_its_line(minor: str) -> None:
    (finding,) = program(minor, "operator_without_shapes")["report"]["findings"]
    assert (finding["code"], finding["line"]) == ("compile-error", 16)
    assert "no fake impl registered" in finding["message"]


@each_minor
def test_a_dimension_marked_dynamic_and_fixed_is_an_error_on_its_line(minor: str) -> None:
    (finding,) = program(minor, "marked_and_fixed")["report"]["findings"]
    assert (finding["code"], finding["line"]) == ("compile-error", 10)
    assert "L['x'].size()[0]" in finding["message"]


@each_minor
def test_inductor_is_read_from_the_graph_to_the_kernels(minor: str) -> None:
    report = program(minor, "trained")["report"]
    assert report["status"] == "compiled"
    assert {"captured", "joint", "partitioned", "lowered"} <= set(report["stages"])
    assert {phase for _, phase, _ in report["kernels"]} == {"forward", "backward"}
    assert {line for _, _, lines in report["kernels"] for line in lines} == {13, 14}
    assert {kind for kind, _ in report["fusion_groups"]} >= {"extern", "pointwise", "reduction"}
    assert report["saved"] > 0
    assert report["passes"]
    inferred = program(minor, "inferred")["report"]
    assert {line for _, _, lines in inferred["kernels"] for line in lines} == {9, 10}


@each_minor
def test_a_simulated_gpu_gives_triton_kernels_on_the_same_lines(minor: str) -> None:
    for name in ("trained", "inferred"):
        on_cpu, on_gpu = (program(minor, one)["report"]["kernels"] for one in (name, f"{name} on {record.GPU}"))
        assert {language for language, _, _ in on_gpu} == {"triton", "extern"}
        assert {line for _, _, lines in on_gpu for line in lines} == {line for _, _, lines in on_cpu for line in lines}
        assert {phase for _, phase, _ in on_gpu} == {phase for _, phase, _ in on_cpu}


@each_minor
def test_what_keeps_cuda_graphs_away_is_told(minor: str) -> None:
    report = program(minor, f"replayed on {record.GPU}")["report"]
    assert report["cudagraphs"] == {"status": "skipped", "reason": "mutated inputs (1 instances)"}
    assert [(one["code"], one["line"]) for one in report["findings"]] == [("cudagraphs-skipped", 10)]


@each_minor
def test_frozen_weights_are_read(minor: str) -> None:
    report = program(minor, "frozen")["report"]
    assert {line for _, _, lines in report["kernels"] for line in lines} == {16}
    assert "eliminate_dead_code" in report["passes"]
    frozen = {name: state for name, state in fixture(minor)["points"].items() if "_inductor.freezing" in name}
    assert set(frozen.values()) == {"called"}


@each_minor
def test_a_call_that_is_asked_about_is_answered(minor: str) -> None:
    other_sizes, known_sizes = program(minor, "sizes_change")["report"]["what_if"]
    assert other_sizes[0] == "recompiles"
    assert "tensor 'x' size mismatch" in other_sizes[1]
    assert known_sizes == ["reused", []]


@each_minor
def test_the_phases_of_a_compilation_are_told(minor: str) -> None:
    phases = set(program(minor, "trained")["report"]["phases"])
    assert {"dynamo", "guards", "aot autograd", "joint tracing", "partitioning", "lowering", "scheduling"} <= phases
    assert {"joint passes", "post-grad passes", "kernel code", "wrapper code"} <= phases


def _guards(minor: str, name: str) -> Iterator[object]:
    log = GuardLog(UserCode())
    leaves = tuple(_leaf(entry) for entry in program(minor, name)["guards"])
    log.meet(GuardsEvent("0/0", _guards.__code__, leaves, ()))
    yield from log.guards()


def _leaf(entry: dict[str, object]) -> Leaf:
    line = entry["line"]
    frames = (Frame("<program>", line, "f"),) if isinstance(line, int) else ()
    return Leaf(str(entry["check"]), str(entry["source"]), str(entry["text"]), frames)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_torch_at_hand_does_what_was_recorded_of_its_version(tmp_path: Path) -> None:
    minor = ".".join(torch.__version__.split(".")[:2])
    if minor not in MINORS:
        pytest.skip(f"torch {minor} is not recorded")
    out = tmp_path / "now.json"
    command = [sys.executable, record.__file__, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    now, then = json.loads(out.read_text(encoding="utf-8")), fixture(minor)
    for name, found in then["programs"].items():
        for fact in ("status", "findings", "graphs", "kernels", "fusion_groups", "dimensions", "what_if"):
            assert now["programs"][name]["report"][fact] == found["report"][fact], (name, fact)
    assert {point for point, state in now["points"].items() if state == "called"} >= {
        point for point, state in then["points"].items() if state == "called" and point in now["points"]
    }
