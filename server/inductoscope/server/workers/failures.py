"""The one place where a failure becomes sentences, a finding and a report.

Every message says what happened, why as far as that is known, and what to do.  Nothing here raises.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.messages import PROTOCOL, Failure, FailureKind, Hello, Target
from inductoscope.protocol.report import Finding, Place, Rung, Severity, Span, Status, TargetReport
from inductoscope.server.workers import fault
from inductoscope.server.workers.process import Exit

_LAST_WORDS = 3
_SIGNALS = {
    "SIGSEGV": "segmentation fault: native code, such as a custom operator, touched memory that is not its own",
    "SIGABRT": "abort: native code gave up on a failed check",
    "SIGBUS": "bus error: native code touched memory that is not there",
    "SIGFPE": "arithmetic error in native code, such as an integer division by zero",
    "SIGILL": "illegal instruction: native code was built for another processor",
    "SIGKILL": "killed from outside, most often by the system because memory ran out",
    "SIGTERM": "ended from outside",
}
_STATUS = {
    FailureKind.NO_INPUTS: Status.NO_INPUTS,
    FailureKind.NO_TORCH: Status.NOT_RUN,
    FailureKind.NO_INTERPRETER: Status.NOT_RUN,
    FailureKind.DEVICE: Status.NOT_RUN,
}
_CODE = {
    FailureKind.NO_INPUTS: "no-inputs",
    FailureKind.CRASH: "worker-crash",
    FailureKind.TIMEOUT: "worker-crash",
    FailureKind.MEMORY: "worker-crash",
    FailureKind.INTERNAL: "worker-crash",
}


def crashed(target: Target, end: Exit, output: Sequence[str], doing: str | None) -> Failure:
    """The worker's process ended before the run did."""
    if end.signal is not None:
        how = f"was killed by signal {end.signal} ({_SIGNALS.get(end.signal, 'no usual reason is known for it')})"
        advice = "Run the file under Python alone to see whether it crashes there too"
    elif end.code is None:
        how = "ended before it was done, and so did the process that it was forked from, which could have told how"
        advice = "Run the file under Python alone to see whether it ends there too"
    else:
        how = f"ended with exit code {end.code} before it was done (the program, or a library, ended it)"
        advice = "Keep os._exit and the like out of what is imported and called"
    where = fault.user_place(output) if end.signal is not None else None
    at = f" at line {where.line} of {where.file}" if where is not None else _while(doing)
    message = f"The process that ran {target.name} {how}{at}. {advice}. {_last_words(output)}"
    return Failure(FailureKind.CRASH, message.strip(), _span(where), "\n".join(output))


def timed_out(target: Target, limit_s: float, output: Sequence[str], doing: str | None) -> Failure:
    """The run took longer than it may."""
    where = fault.user_place(output)
    at = f"; it was then at line {where.line} of {where.file}" if where is not None else _while(doing)
    message = (
        f"Running {target.name} took more than {limit_s:g} s and was stopped{at}. "
        "Make the example smaller, or raise the limit (--timeout, or timeout in the settings)."
    )
    return Failure(FailureKind.TIMEOUT, message, _span(where), "\n".join(output))


def out_of_memory(target: Target, used: int, limit: int, doing: str | None) -> Failure:
    """The worker and its children took more memory than they may."""
    message = (
        f"Running {target.name} took {_gib(used)} of memory, over the limit of {_gib(limit)}, and was stopped"
        f"{_while(doing)}. Make the example inputs smaller, or raise the limit (memory in the settings)."
    )
    return Failure(FailureKind.MEMORY, message)


def garbled(target: Target, problem: str, output: Sequence[str]) -> Failure:
    """The worker sent something that is no message."""
    message = (
        f"The process that ran {target.name} sent something that is not a message ({problem}), so the run was given "
        "up. The program may write to file descriptors that it did not open; if not, please report this."
    )
    return Failure(FailureKind.CRASH, message, None, "\n".join(output))


def hung_up(target: Target, output: Sequence[str]) -> Failure:
    """The worker's end of the channel was closed, but its process goes on."""
    message = (
        f"The process that ran {target.name} closed its connection to Inductoscope, so the run was given up. "
        "The program closes file descriptors that it did not open, such as by os.closerange(); let it close its own."
    )
    return Failure(FailureKind.CRASH, message, None, "\n".join(output))


def silent_start(limit_s: float, output: Sequence[str]) -> Failure:
    """The worker said nothing for too long after its start."""
    message = f"The worker did not get ready within {limit_s:g} s, so it was stopped. {_last_words(output)}"
    return Failure(FailureKind.TIMEOUT, message.strip(), None, "\n".join(output))


def died_at_start(end: Exit, output: Sequence[str]) -> Failure:
    """The worker's process ended before it said hello."""
    how = f"was killed by signal {end.signal}" if end.signal is not None else f"ended with exit code {end.code}"
    message = f"The worker {how} while it started. Try `import torch` in this interpreter. {_last_words(output)}"
    return Failure(FailureKind.CRASH, message.strip(), None, "\n".join(output))


def no_hello(problem: str, output: Sequence[str]) -> Failure:
    """The worker's first words are not a hello."""
    message = f"The worker does not speak this version's protocol ({problem}). Install inductoscope again."
    return Failure(FailureKind.INTERNAL, message, None, "\n".join(output))


def refused(hello: Hello) -> Failure | None:
    """Why a worker that said hello cannot be used, or None."""
    if hello.protocol != PROTOCOL:
        return no_hello(f"it speaks version {hello.protocol}, not {PROTOCOL}", ())
    if hello.problem is not None:
        return Failure(FailureKind.NO_TORCH, hello.problem)
    return None


def no_interpreter(interpreter: str, error: OSError) -> Failure:
    """The interpreter cannot be started, or not in that folder."""
    reason = error.strerror or str(error)
    if error.filename not in (None, interpreter):
        reason = f"{error.filename}: {reason}"
    advice = "Choose another one (--python, or the settings)."
    message = f"The Python interpreter {interpreter} cannot be started: {reason}. {advice}"
    return Failure(FailureKind.NO_INTERPRETER, message)


def pool_closed() -> Failure:
    """A run was asked for while everything is being shut down."""
    return Failure(FailureKind.INTERNAL, "Nothing was run, because the workers are being shut down.")


def blank(target: Target, device: str, rung: Rung) -> TargetReport:
    """The report of a target about which nothing is known yet."""
    return TargetReport(target.file, target.name, target.line, device, rung, Status.NOT_RUN)


def with_failure(report: TargetReport, found: Sequence[Finding], failure: Failure, target: Target) -> TargetReport:
    """`report` with the findings that it missed and the failure that ended the run."""
    findings = [*report.findings, *(finding for finding in found if finding not in report.findings)]
    finding = _finding(target, failure, report.rung)
    if finding is not None and not any(_says(known, finding) for known in findings):
        findings.append(finding)
    return dataclasses.replace(
        report,
        status=_STATUS.get(failure.kind, Status.FAILED),
        message=failure.message,
        findings=tuple(findings),
    )


def _says(known: Finding, new: Finding) -> bool:
    return known.message == new.message or (known.severity is Severity.ERROR and known.code == new.code)


def _finding(target: Target, failure: Failure, rung: Rung) -> Finding | None:
    """The failure at its place; None when it is no matter of the file (no torch, no interpreter, no device)."""
    if _STATUS.get(failure.kind) is Status.NOT_RUN:
        return None
    code = _CODE.get(failure.kind, "run-error")
    place = failure.place or Span(target.file, target.line, 0, target.line, 0)
    return Finding(
        code=code,
        severity=CODES[code].severity,
        file=place.file,
        line=place.line,
        column=place.column,
        end_line=place.end_line,
        end_column=place.end_column,
        message=failure.message,
        rung=rung,
        function=target.name,
    )


def _span(place: Place | None) -> Span | None:
    return None if place is None else Span(place.file, place.line, 0, place.line, 0)


def _while(doing: str | None) -> str:
    return f" while {doing}" if doing else ""


def _last_words(output: Sequence[str]) -> str:
    said = fault.without_dumps(output)[-_LAST_WORDS:]
    return f"Its last output was: {' | '.join(said)}" if said else ""


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
