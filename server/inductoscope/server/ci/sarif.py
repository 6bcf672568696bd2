"""A report as SARIF 2.1.0, which code hosts and editors read.

Columns are code points, as in the report, but 1-based; paths are relative to a folder.  Knows no files but through what
it is given, and writes none.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from inductoscope.protocol import codec
from inductoscope.protocol.codes import CODES, Code
from inductoscope.protocol.report import Finding, Report, Severity
from inductoscope.server import pages
from inductoscope.server.ci.fingerprints import Fingerprints, relative

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
ROOT = "SRCROOT"
FINGERPRINT = "inductoscope/v1"

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}
_RULES = {name: number for number, name in enumerate(CODES)}


class State(enum.Enum):
    """Whether a baseline knows a finding; the values are SARIF's."""

    NEW = "new"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Found:
    """A finding, the target and device that it was found for, and its state where there is a baseline."""

    finding: Finding
    target: str
    device: str
    state: State | None = None


def log(report: Report, found: Sequence[Found], problems: Sequence[str], marks: Fingerprints, folder: Path) -> Any:
    """The SARIF log, as a JSON value."""
    named = marks.names([one.finding for one in found])
    run = {
        "tool": {"driver": _driver(report)},
        "invocations": [_invocation(problems)],
        "originalUriBaseIds": {ROOT: {"uri": folder.as_uri().rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, mark, folder) for one, mark in zip(found, named, strict=True)],
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _driver(report: Report) -> dict[str, Any]:
    versions = {"torch": report.torch, "triton": report.triton, "python": report.python}
    return {
        "name": "Inductoscope",
        "semanticVersion": report.inductoscope,
        "rules": [_rule(code) for code in CODES.values()],
        "properties": {name: version for name, version in versions.items() if version is not None},
    }


def _rule(code: Code) -> dict[str, Any]:
    page = pages.page(code.name)
    title = code.title[0].upper() + code.title[1:] + "."
    rule: dict[str, Any] = {
        "id": code.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": page.summary if page is not None else title},
        "defaultConfiguration": {"level": _LEVELS[code.severity], "enabled": code.shown},
        "properties": {"tags": ["performance", "torch.compile"], "precision": "high"},
    }
    if page is not None:
        rule["help"] = {"text": pages.plain(page.markdown), "markdown": page.markdown}
    return rule


def _invocation(problems: Sequence[str]) -> dict[str, Any]:
    notes = [{"level": "error", "message": {"text": problem}} for problem in problems]
    return {"executionSuccessful": not problems, "toolExecutionNotifications": notes}


def _result(found: Found, fingerprint: str, folder: Path) -> dict[str, Any]:
    finding = found.finding
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(finding, folder)],
        "partialFingerprints": {FINGERPRINT: fingerprint},
        "properties": _properties(found),
    }
    if finding.code in _RULES:
        result["ruleIndex"] = _RULES[finding.code]
    if finding.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "message": {"text": one.message},
                "physicalLocation": _physical(one.file, {"startLine": max(one.line, 1)}, folder),
            }
            for number, one in enumerate(finding.related, start=1)
        ]
    if found.state is not None:
        result["baselineState"] = found.state.value
    return result


def _message(finding: Finding) -> str:
    known_by = f" ({finding.id})" if finding.id is not None and finding.id not in finding.message else ""
    hints = "".join(f"\nHint: {hint}" for hint in finding.hints)
    link = f"\nSee {finding.link}" if finding.link is not None else ""
    return f"{finding.message}{known_by}{hints}{link}"


def _location(finding: Finding, folder: Path) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": _physical(finding.file, _region(finding), folder)}
    if finding.function:
        location["logicalLocations"] = [{"name": finding.function, "kind": "function"}]
    return location


def _region(finding: Finding) -> dict[str, int]:
    """The lines; columns only where the finding has a width."""
    start, end = (finding.line, finding.column), (finding.end_line, finding.end_column)
    region = {"startLine": max(finding.line, 1)}
    if end > start:
        region |= {"startColumn": finding.column + 1, "endLine": finding.end_line, "endColumn": finding.end_column + 1}
    return region


def _physical(file: str, region: Mapping[str, int], folder: Path) -> dict[str, Any]:
    path = relative(file, folder)
    if Path(path).is_absolute() or path.startswith("../"):
        place = {"uri": Path(file).as_uri() if Path(file).is_absolute() else _quoted(path)}
    else:
        place = {"uri": _quoted(path), "uriBaseId": ROOT}
    return {"artifactLocation": place, "region": dict(region)}


def _quoted(path: str) -> str:
    """A relative path as a URI; names of files are bytes, which need not be Unicode."""
    return quote(os.fsencode(path))


def _properties(found: Found) -> dict[str, Any]:
    finding = found.finding
    values = {
        "target": found.target,
        "device": found.device,
        "id": finding.id,
        "outcome": codec.to_json(finding.outcome),
        "guardFamily": finding.guard_family,
        "rung": finding.rung.value,
        "count": finding.count,
    }
    return {name: value for name, value in values.items() if value is not None}
