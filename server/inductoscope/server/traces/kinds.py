"""Which record means what: one table from kinds of records, and names of artifacts, to what is done with them.

`HANDLERS` are records that say something by themselves, `TEXTS` those whose payload is kept for whoever asks, `NOTED`
those that are only counted, with the reason.  Anything else is unknown: counted, listed, and never an error.  Names and
their history are those of torch 2.6 to 2.15.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from inductoscope.server.traces.compilations import CacheEvent, Compilation, Pinned, Symbol, Text
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.records import Record

Handler = Callable[[Process, Record], None]

_KEPT_METRICS = frozenset(
    {
        "co_name",
        "co_filename",
        "co_firstlineno",
        "cache_size",
        "accumulated_cache_size",
        "guard_count",
        "shape_env_guard_count",
        "graph_op_count",
        "graph_node_count",
        "graph_input_count",
        "start_time",
        "start_time_us",
        "entire_frame_compile_time_s",
        "backend_compile_time_s",
        "inductor_compile_time_s",
        "code_gen_time_s",
        "fail_type",
        "fail_reason",
        "fail_user_frame_filename",
        "fail_user_frame_lineno",
        "non_compliant_ops",
        "compliant_custom_ops",
        "restart_reasons",
        "dynamo_time_before_restart_s",
        "has_guarded_code",
        "is_forward",
        "num_triton_bundles",
        "num_graph_breaks",
        "recompile_reason",
        "cudagraph_skip_reason",
        "cuda_synchronize_time_us",
        "triton_kernel_compile_times_us",
        "ir_count",
        "specialize_float",
        "param_numel",
        "param_bytes",
        "param_count",
    }
)
"""Fields of the metrics that are kept; of the others only times, for the settings alone take 30 kB a compilation."""

_CACHE_RECORD = re.compile(r"(?P<cache>\w+_cache)_(?P<result>hit|miss|bypass|exception)$")
_STARTS_BACKWARD = "bwd_compilation_metrics"


def _interned(process: Process, record: Record) -> None:
    text, number = record.fields
    process.names[int(number)] = str(text)


def _start(process: Process, record: Record) -> None:
    one = _of(process, record)
    if one.metrics and record.attempt == 0:
        one = process.begin(one.id)  # the ids begin anew after a reset
    one.stack = process.frames(record.fields.get("stack"))
    if one.stack:
        process.functions[one.frame_number] = one.stack[-1]
    one.attempts = max(one.attempts, record.attempt + 1)
    one.clock = one.clock or record.clock


def _metrics(process: Process, record: Record) -> None:
    one, fields = _of(process, record), record.fields
    kept = {name: value for name, value in fields.items() if _is_kept(name, value)}
    if record.kind == _STARTS_BACKWARD or fields.get("is_forward") is False:
        one.backward = _added(one.backward, kept)
        return
    one.metrics.update(kept)
    began = fields.get("start_time")
    if isinstance(began, int | float) and process.began_s is None:
        process.began_s = float(began)
    process.torch = process.torch or _text(fields.get("pytorch_version"))
    process.triton = process.triton or _text(fields.get("triton_version"))
    python = _text(fields.get("python_version"))
    process.python = process.python or (python.split()[0] if python else None)


def _is_kept(name: str, value: Any) -> bool:
    if value is None:
        return False
    return name in _KEPT_METRICS or (name.endswith("_us") and isinstance(value, int | float))


def _added(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Metrics of several backward passes of one compilation: times add up, the rest is the last one's."""
    times = {name: before.get(name, 0) + value for name, value in more.items() if name.endswith("_us")}
    return {**before, **more, **times}


def _graph(process: Process, record: Record) -> None:
    _of(process, record).graphs.append(Text(record.kind, record.attempt, record.payload))


def _code(process: Process, record: Record) -> None:
    name = str(record.fields.get("filename") or record.fields.get("file_path") or "output_code")
    _of(process, record).codes.append(Text(name, record.attempt, record.payload))


def _guards(process: Process, record: Record) -> None:
    _of(process, record).guards = record.payload


def _break(process: Process, record: Record) -> None:
    _of(process, record).breaks.append(Text(record.name, record.attempt, record.payload))


def _reasons(process: Process, record: Record) -> None:
    one = _of(process, record)
    if one.stack or one.metrics:
        one = process.begin(one.id)
    one.reasons = record.payload
    one.clock = one.clock or record.clock


def _error(process: Process, record: Record) -> None:
    _of(process, record).error = record.payload


def _cache(process: Process, record: Record) -> None:
    match = _CACHE_RECORD.match(record.name)
    if match is not None:
        _of(process, record).caches.append(CacheEvent(match["cache"], match["result"], record.payload))


def _cache_hash(process: Process, record: Record) -> None:
    """Before 2.6 the answer of a cache lay under the name of its hash, with the answer inside."""
    event = CacheEvent(record.name.removesuffix("_hash"), "unknown", record.payload)
    state = str(event.details().get("cache_state") or "unknown")
    _of(process, record).caches.append(CacheEvent(event.cache, state, event.payload))


def _pinned(process: Process, record: Record) -> None:
    fields = record.fields
    frames = process.user_frames(fields.get("user_stack")) or process.user_frames(fields.get("stack"))
    sources = fields.get("sources")
    for source in sources if isinstance(sources, list) and sources else [fields.get("symbol")]:
        pinned = Pinned(str(source), str(fields.get("value")), str(fields.get("reason") or ""), frames)
        _of(process, record).pinned.append(pinned)


def _symbol(process: Process, record: Record) -> None:
    parts = (str(record.fields.get(name) or "") for name in ("symbol", "source", "val", "vr"))
    _of(process, record).symbols.append(Symbol(*parts))


def _version(process: Process, record: Record) -> None:
    _keep(process, record)
    data = json.loads(record.payload.text() or "{}")
    process.torch = process.torch or _text(data.get("pytorch_version"))


def _schedule(process: Process, record: Record) -> None:
    _keep(process, record)
    data = json.loads(record.payload.text() or "[]")
    if isinstance(data, list):
        _of(process, record).collectives += [str(one) for one in data]


def _event(process: Process, record: Record) -> None:
    process.events.add(record.payload.spans)


def _link(process: Process, record: Record) -> None:
    process.links.append((str(record.fields.get("name")), str(record.fields.get("url"))))


def _split(process: Process, record: Record) -> None:
    _of(process, record).splits += 1
    _keep(process, record)


def _keep(process: Process, record: Record) -> None:
    name = record.name or _named(record)
    _of(process, record).texts.append(Text(name, record.attempt, record.payload))


def _inputs(process: Process, record: Record) -> None:
    if isinstance(record.fields, Mapping):
        _of(process, record).inputs.append(dict(record.fields))


def _limit(process: Process, record: Record) -> None:
    process.limits.append(record.fields)


def _skipped(process: Process, record: Record) -> None:
    process.skipped.append(record.fields)


def _program(process: Process, record: Record) -> None:
    command = record.fields.get("command")
    process.command = tuple(map(str, command)) if isinstance(command, list) else ()
    process.python = _text(record.fields.get("python"))
    process.torch = process.torch or _text(record.fields.get("torch"))


def _named(record: Record) -> str:
    fields = record.fields if isinstance(record.fields, Mapping) else {}
    own = fields.get("name") or fields.get("filename")
    return f"{record.kind}_{own}" if isinstance(own, str) else record.kind


def _of(process: Process, record: Record) -> Compilation:
    return process.compilation(record.compile_id or "-")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_GRAPH_KINDS = (
    "dynamo_output_graph",
    "aot_forward_graph",
    "aot_backward_graph",
    "aot_joint_graph",
    "aot_inference_graph",
    "inductor_pre_grad_graph",
    "inductor_post_grad_graph",
    "compiled_autograd_graph",
)

HANDLERS: Mapping[str, Handler] = {
    "str": _interned,
    "dynamo_start": _start,
    "compilation_metrics": _metrics,
    "bwd_compilation_metrics": _metrics,
    "aot_autograd_backward_compilation_metrics": _metrics,
    **dict.fromkeys(_GRAPH_KINDS, _graph),
    "inductor_output_code": _code,
    "dynamo_cpp_guards_str": _guards,
    "symbolic_shape_specialization": _pinned,
    "create_symbol": _symbol,
    "chromium_event": _event,
    "link": _link,
    "optimize_ddp_split_graph": _keep,
    "optimize_ddp_split_child": _split,
    "inductoscope_program": _program,
    "inductoscope_inputs": _inputs,
    "inductoscope_limit": _limit,
    "inductoscope_skipped": _skipped,
}
"""Records by their key."""

ARTIFACTS: Mapping[str, Handler] = {
    "dynamo_graph_break_reason": _break,
    "recompile_reasons": _reasons,
    "dynamo_error": _error,
    "torch_version": _version,
    "inductor_collective_schedule": _schedule,
    "fx_graph_cache_hash": _cache_hash,
    "aotautograd_cache_hash": _cache_hash,
}
"""Artifacts by their name; every `*_cache_hit`, `_miss`, `_bypass` and `_exception` is an answer of a cache."""

TEXTS = frozenset({"artifact", "graph_dump", "dump_file", "exported_program", "dynamo_guards", "bytecode_dump"})
"""Records whose payload is kept under its name and not looked into: every other artifact is one."""

NOTED: Mapping[str, str] = {
    "describe_tensor": "meta tensors of the compiler; arguments are told by guards",
    "describe_storage": "meta tensors of the compiler",
    "describe_source": "meta tensors of the compiler",
    "guard_added_fast": "the same conditions stand in the guards that are checked",
    "guard_added": "the same conditions stand in the guards that are checked",
    "create_unbacked_symbol": "of export",
    "missing_fake_kernel": "of draft export",
    "mismatched_fake_kernel": "of draft export",
    "propagate_real_tensors": "of draft export",
    "propagate_real_tensors_provenance": "of draft export",
    "expression_created": "of draft export",
    "compilation_metrics_runtime": "times of autotuning after compilation",
}
"""Records that are counted and said nothing of, and why."""


def handler(kind: str, name: str) -> Handler | None:
    """What is done with a record; None for one that is only counted."""
    if kind == "artifact":
        return ARTIFACTS.get(name) or (_cache if _CACHE_RECORD.match(name) else _keep)
    return HANDLERS.get(kind) or (_keep if kind in TEXTS else None)


def is_known(kind: str) -> bool:
    """Whether this table says what a record of this key is."""
    return kind in HANDLERS or kind in TEXTS or kind in NOTED
