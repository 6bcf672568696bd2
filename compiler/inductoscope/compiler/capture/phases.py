"""How long Dynamo took for a compilation, by torch's own clock."""

from __future__ import annotations

from collections import defaultdict

from inductoscope.compiler.compat import dynamo_trace

RECORD = "compilation_metrics"


class PhaseLog:
    """Adds up the times of all compilations.  The backend's share is its own to tell."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def meet(self, record: dynamo_trace.Record) -> None:
        """Take in the metrics of one compilation."""
        if record.fields.get("is_forward") is False or not record.compile_id:
            return
        whole = float(record.fields.get("entire_frame_compile_time_s") or 0)
        backend = float(record.fields.get("backend_compile_time_s") or 0)
        self._seconds[record.compile_id] += max(whole - backend, 0.0)

    def seconds(self, compile_id: str) -> float:
        """Time that Dynamo spent on one compilation, 0 where unknown."""
        return self._seconds.get(compile_id, 0.0)
