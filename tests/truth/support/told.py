"""What a report says, in the forms of `account`, so that the two can be compared as they are."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

from .account import OUTCOMES, REFUSED, Guard, Place, Recompile, in_words, is_user, source_of, steady

Json = dict[str, Any]


def graphs(report: Json) -> list[tuple[str, int]]:
    """Compile id and number of operators of each graph that Dynamo captured."""
    return [(one["id"], one["ops"]) for one in report["graphs"] if one["phase"] == "forward"]


def breaks(report: Json) -> list[tuple[str, int, str, str, str, int]]:
    """File, line, type, id, outcome and number of reports of each root cause.

    Two expressions on one line are two for the report, which knows columns, and one in torch's text, which has none.
    What a backend refuses torch does not place (see `Account.break_reports`).
    """
    causes: dict[tuple[str, int, str, str, str], list[Json]] = {}
    for one in report["breaks"]:
        if not one["fullgraph"] and one["reason"] != REFUSED:
            key = (*_line(one), one["reason"], one["code"], json.dumps(one["inner"]))
            causes.setdefault(key, []).append(one)
    return sorted(
        (*key[:4], max((one["outcome"] for one in same), key=OUTCOMES.index), sum(one["count"] for one in same))
        for key, same in causes.items()
    )


def _line(one: Json) -> tuple[str, int]:
    return ("library", 0) if not one["frames"] else (one["file"], one["line"])


def recompiles(report: Json, library: Collection[str]) -> list[Recompile]:
    """Every attempt to compile again.

    A function that is no user's is told on the user's line that calls it, which torch does not tell: `library` are the
    compile ids of these.
    """
    return [
        Recompile(
            one["compile_id"],
            Place("library", 0, one["function"])
            if one["compile_id"] in library
            else Place(one["file"], one["line"], one["function"]),
            tuple((steady(guard["text"]), guard["line"]) for guard in one["guards"]),
        )
        for one in report["recompiles"]
    ]


def limit(report: Json) -> tuple[int, str, str, int] | None:
    """Limit, function, file and line of the first function that was given up."""
    told = report["recompile_limit"]
    return told and (told["limit"], told["function"], told["file"], told["line"])


def skipped(report: Json) -> set[tuple[str, str]]:
    """Name and file of the user's functions that were left alone."""
    return {(one["function"], one["file"]) for one in report["skipped"] if is_user(one["file"])}


def guards(report: Json) -> dict[str, Counter[Guard]]:
    """The guards of each compiled version; the report has a fact for each property of a tensor that is checked."""
    found: defaultdict[str, Counter[Guard]] = defaultdict(Counter)
    tensors: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in report["guards"]:
        if one["kind"] in ("dtype", "requires-grad", "size", "stride"):
            tensors[one["compile_id"], source_of(one["source"])][one["kind"]] = (one["expected"] or "").replace(
                "any", "None"
            )
        elif one["kind"] in ("type", "identity"):
            found[one["compile_id"]][one["kind"], source_of(one["source"]), ""] += 1
        elif one["kind"] == "dynamic-marks":
            found[one["compile_id"]]["marks", source_of(one["source"]), ""] += 1
        elif one["kind"] not in ("device", "dispatch-keys"):
            found[one["compile_id"]]["text", "", steady(in_words(one["text"]))] += 1
    for (compile_id, source), parts in tensors.items():
        checked = " ".join(parts[kind] for kind in ("dtype", "requires-grad", "size", "stride"))
        found[compile_id]["tensor", source, checked] += 1
    return dict(found)


def wrappers(report: Json) -> dict[str, list[str]]:
    """What Inductor wrote for each compilation, the forward first."""
    found: dict[str, list[str]] = {}
    for one in sorted(report["wrappers"], key=lambda one: one["phase"] == "backward"):
        found.setdefault(one["graph"], []).append(one["source"])
    return found


def kernels(report: Json, phase: str) -> dict[str, list[str]]:
    """The kernels and library calls of each compilation, in order."""
    found: dict[str, list[str]] = {}
    for one in report["kernels"]:
        if one["phase"] == phase:
            found.setdefault(one["graph"], []).append(one["name"])
    return found
