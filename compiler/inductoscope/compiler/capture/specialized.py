"""Sizes and numbers that a line of code pinned to one value although they could have stayed symbolic."""

from __future__ import annotations

import re
from collections.abc import Container

from inductoscope.compiler.capture.findings import at_line
from inductoscope.compiler.compat import dynamo_stacks, dynamo_trace
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import Finding, Specialization

RECORD = "symbolic_shape_specialization"
_LOCAL = re.compile(r"\bL\['(\w+)'\]")


class SpecializationLog:
    """Collects the records; attempts and later passes repeat them."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._found: dict[Specialization, None] = {}

    def meet(self, record: dynamo_trace.Record) -> None:
        """Take in a record of the structured trace."""
        at = self._user_code.innermost(dynamo_stacks.recorded_frames(record.fields.get("user_stack") or ()))
        reason = str(record.fields.get("reason") or "").replace("_", " ")
        value = _number(str(record.fields.get("value")))
        for source in record.fields.get("sources") or ():
            name = _LOCAL.sub(r"\1", str(source))
            one = Specialization(name, value, reason, at.file if at else None, at.line if at else None)
            self._found[one] = None

    def specializations(self) -> tuple[Specialization, ...]:
        """Each one once."""
        return tuple(self._found)

    def findings(self, failed: Container[tuple[str, int]]) -> tuple[Finding, ...]:
        """One finding for each line and source, but none for lines in `failed`, where an error says it already."""
        values: dict[tuple[str, int, str], list[str]] = {}
        for one in self._found:
            if one.file is not None and one.line is not None and (one.file, one.line) not in failed:
                values.setdefault((one.file, one.line, one.source), []).append(one.value)
        return tuple(_finding(*where, pinned) for where, pinned in values.items())


def _finding(file: str, line: int, source: str, values: list[str]) -> Finding:
    to = values[0] if len(values) == 1 else f"one value in each compilation ({', '.join(values)})"
    message = f"This line pins `{source}` to {to}: another value compiles the function again."
    return at_line("specialized", file, line, message, count=len(values))


def _number(text: str) -> str:
    """A number the way Python writes it; symbolic ones have fifteen digits."""
    try:
        return repr(float(text)) if "." in text else text
    except ValueError:
        return text
