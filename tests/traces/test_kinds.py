"""Which kinds of records are known, and which of them the recorded traces have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inductoscope.server.traces import kinds, reading
from inductoscope.server.traces.process import Process
from traces.support import VERSIONS

# Every key of a record that torch 2.3 to 2.15 or tlparse 0.4 knows.
DOCUMENTED = frozenset(
    """str dynamo_start dynamo_output_graph dynamo_guards dynamo_cpp_guards_str compiled_autograd_graph
    aot_forward_graph aot_backward_graph aot_joint_graph aot_inference_graph inductor_pre_grad_graph
    inductor_post_grad_graph
    inductor_output_code optimize_ddp_split_graph optimize_ddp_split_child compilation_metrics bwd_compilation_metrics
    aot_autograd_backward_compilation_metrics describe_tensor describe_storage describe_source graph_dump link
    symbolic_shape_specialization chromium_event dump_file artifact guard_added_fast guard_added create_unbacked_symbol
    missing_fake_kernel mismatched_fake_kernel propagate_real_tensors_provenance expression_created exported_program
    bytecode_dump compilation_metrics_runtime create_symbol propagate_real_tensors""".split()  # noqa: SIM905
)
# Those that a program has to ask for (export, draft export, TORCH_DTRACE, AOTInductor), that old versions alone write,
# or that need a GPU: they are read as texts, or counted.
NOT_RECORDED = frozenset(
    """dynamo_guards inductor_pre_grad_graph aot_autograd_backward_compilation_metrics graph_dump link guard_added
    create_unbacked_symbol missing_fake_kernel mismatched_fake_kernel propagate_real_tensors_provenance
    expression_created exported_program bytecode_dump compilation_metrics_runtime propagate_real_tensors
    inductor_post_grad_graph dump_file""".split()  # noqa: SIM905
)
ARTIFACTS = frozenset(
    """dynamo_graph_break_reason recompile_reasons dynamo_error fx_graph_cache_miss fx_graph_cache_hit
    aotautograd_cache_miss aotautograd_cache_hit inductor_provenance_tracking_kernel_stack_traces
    inductor_provenance_tracking_node_mappings fx_graph_runnable inductor_collective_schedule""".split()  # noqa: SIM905
)


def processes(recorded: Path, version: str) -> Iterator[Process]:
    for source in reading.read_files(reading.files(recorded / version)):
        yield from source.processes.values()


def test_every_documented_kind_is_known() -> None:
    assert {kind for kind in DOCUMENTED if kind != "artifact" and not kinds.is_known(kind)} == set()
    assert kinds.handler("artifact", "anything") is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_kinds(version: str, recorded: Path) -> None:
    found = {kind for process in processes(recorded, version) for kind in process.records}
    assert found <= DOCUMENTED
    assert DOCUMENTED - found - NOT_RECORDED == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_artifacts(version: str, recorded: Path) -> None:
    found: set[str] = set()
    for process in processes(recorded, version):
        for one in process.compilations:
            found |= {text.name for text in (*one.texts, *one.breaks)}
            found |= {f"{event.cache}_{event.result}" for event in one.caches}
            found |= {"recompile_reasons"} if one.reasons else set()
            found |= {"dynamo_error"} if one.error else set()
    assert ARTIFACTS - found == set()


def test_no_path_of_the_recording_machine(recorded: Path) -> None:
    for path in recorded.rglob("*.log"):
        text = path.read_bytes()
        assert [folder for folder in (b"/tmp/", b"/root/", b"/var/", b"/opt/") if folder in text] == [], path
