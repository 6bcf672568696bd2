"""Compares what `inductoscope check --json` says of the case files with the facts that torch recorded for them.

usage: score.py PYTHON [--interpreter PYTHON] [--device cpu] [--only TEXT] [--timeout SECONDS]

PYTHON has Inductoscope; the interpreter has the torch to be judged, and is the same one if not given.  The facts are
those of torch 2.13; what other versions do otherwise stands in other_versions.json.
Prints a line a case, and last `cases N exact M recall R precision P crashed C`.  Ends with 0 when every case is exact.
A finding counts as a false alarm only if its kind is judged everywhere (`JUDGED`); hints and information are judged
where a case names them.  A thing that is told twice is no false alarm.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
JUDGED = frozenset(
    (
        "graph-break",
        "recompile",
        "recompile-limit",
        "compile-error",
        "numerics-mismatch",
        "register-spill",
        "cudagraphs-skipped",
    )
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TEXT = re.compile(r"'[^']*'")

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A case file and what has to be reported for it."""

    name: str
    file: Path
    must_report: tuple[Json, ...]
    needs_cuda: bool

    @property
    def wanted(self) -> tuple[Json, ...]:
        """The things to be reported; the others say what may not be."""
        return tuple(entry for entry in self.must_report if entry["kind"] != "no-numerics-error")

    @property
    def judged(self) -> frozenset[str]:
        """The kinds of finding that this case may not have beside the wanted ones."""
        tolerant = any(entry["kind"] == "no-numerics-error" for entry in self.must_report)
        return JUDGED | {"numerics-mismatch"} if tolerant else JUDGED


@dataclass(frozen=True)
class Checked:
    """What the command line says of a case: the version of torch that ran it, and the findings."""

    torch: str
    findings: tuple[Json, ...]


@dataclass(frozen=True)
class Verdict:
    """How the findings for one case compare with what it wants."""

    found: int
    missing: tuple[Json, ...] = ()
    extra: tuple[Json, ...] = ()
    crash: str | None = None

    @property
    def exact(self) -> bool:
        """Whether everything wanted is there and nothing else."""
        return not (self.missing or self.extra or self.crash)


@dataclass
class Tally:
    """Sums over all cases."""

    verdicts: list[Verdict] = field(default_factory=list)

    def exact(self) -> int:
        return sum(verdict.exact for verdict in self.verdicts)

    def __str__(self) -> str:
        found = sum(verdict.found for verdict in self.verdicts)
        wanted = found + sum(len(verdict.missing) for verdict in self.verdicts)
        told = found + sum(len(verdict.extra) for verdict in self.verdicts)
        crashed = sum(verdict.crash is not None for verdict in self.verdicts)
        precision = found / told if told else 1.0
        return (
            f"cases {len(self.verdicts)} exact {self.exact()} recall {found}/{wanted} precision {precision:.3f} "
            f"crashed {crashed}"
        )


def cases(device: str, only: str = "") -> Iterator[Case]:
    """The cases that can be run on `device`."""
    for path in sorted(FOLDER.glob("*.expected.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        name = facts["case"]
        case = Case(name, FOLDER / f"{name}.py", tuple(facts["must_report"]), facts.get("requires") == "cuda")
        if only in name and not (case.needs_cuda and device == "cpu"):
            yield case


def check(python: str, case: Case, device: str, timeout: float, interpreter: str | None = None) -> Checked:
    """Run the command line of `python` on a case.  Raises ValueError and subprocess errors."""
    command = [python, "-m", "inductoscope", "check", str(case.file), "--json", "--device", device]
    command += ["--python", interpreter] if interpreter else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=FOLDER, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise ValueError(f"no report, but: {done.stderr[-300:]}") from None
    found = [finding for target in report["targets"] for finding in target.get("findings", [])]
    return Checked(str(report["torch"]), tuple(found))


def judge(case: Case, checked: Checked) -> Verdict:
    """Compare the findings with what the case wants of that version of torch."""
    case = _on_version(case, checked.torch)
    left = list(checked.findings)
    missing = []
    for entry in case.wanted:
        match = next((finding for finding in left if answers(finding, entry, case)), None)
        if match is None:
            missing.append(entry)
        else:
            left.remove(match)
    extra = [finding for finding in left if finding["code"] in case.judged and not _known(finding, case)]
    return Verdict(len(case.wanted) - len(missing), tuple(missing), tuple(extra))


def _on_version(case: Case, torch: str) -> Case:
    others = json.loads((FOLDER / "other_versions.json").read_text(encoding="utf-8"))
    other = others.get(".".join(torch.split(".")[:2]), {}).get(case.name)
    return case if other is None else replace(case, must_report=tuple(other["must_report"]))


def answers(finding: Json, entry: Json, case: Case) -> bool:
    """Whether a finding is what an entry of `must_report` asks for."""
    in_library = entry.get("file") == "library"
    wanted_file, wanted_line = (None, None) if in_library else (entry.get("file"), entry.get("line"))
    name = Path(finding.get("file") or "").name
    file = "self" if name == case.file.name else name
    families = (finding.get("guard_family"), entry.get("guard_family"))
    return (
        finding["code"] == entry["kind"]
        and wanted_file in (None, file)
        and wanted_line in (None, finding.get("line"))
        and (not entry.get("ids") or finding.get("id") in entry["ids"])
        and (not entry.get("severity") or finding.get("outcome") == entry["severity"])
        and (not all(families) or _family(families[0]) == _family(families[1]))
    )


def _known(finding: Json, case: Case) -> bool:
    return any(answers(finding, entry, case) for entry in case.wanted)


def _family(text: str | None) -> str:
    return _TEXT.sub("S", _NUMBER.sub("N", text or "")).strip()


def main() -> int:
    """Score every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("python")
    parser.add_argument("--interpreter", help="the Python that has the torch to be judged")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--timeout", type=float, default=180, help="seconds a case")
    options = parser.parse_args()
    tally = Tally()
    for case in cases(options.device, options.only):
        start = time.monotonic()
        try:
            verdict = judge(case, check(options.python, case, options.device, options.timeout, options.interpreter))
        except (ValueError, KeyError, subprocess.SubprocessError) as error:
            verdict = Verdict(0, case.wanted, crash=f"{type(error).__name__}: {error}")
        tally.verdicts.append(verdict)
        print(f"{case.name}: {_line(verdict)} {time.monotonic() - start:.1f}s", flush=True)
    print(tally)
    return 0 if tally.verdicts and tally.exact() == len(tally.verdicts) else 1


def _line(verdict: Verdict) -> str:
    if verdict.crash is not None:
        return f"CRASH {verdict.crash}"
    if verdict.exact:
        return "ok"
    kept = ("kind", "code", "line", "id", "ids", "outcome", "severity", "guard_family")
    sides = (verdict.missing, verdict.extra)
    missing, extra = ([{key: one[key] for key in kept if one.get(key)} for one in side] for side in sides)
    return f"WRONG missing {json.dumps(missing)} extra {json.dumps(extra)}"


if __name__ == "__main__":
    sys.exit(main())
