"""The arguments of `check` for machines that guard a repository, and what they ask for.

Imports what it needs only when they are read, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inductoscope.server.ci.verdict import Wanted

STANDARD_OUTPUT = "-"


class OptionError(ValueError):
    """Arguments that do not go together; the message is a sentence."""


_FAIL_ON = "finding codes, or error, warning, any"
_SARIF = "write a SARIF 2.1.0 log; `-` is standard output, in place of the text"
_BASELINE = "findings that FILE knows are no reason to fail"
_WRITE = "write the findings of this check to the FILE of --baseline"
_ALLOW = "files without anything to compile, or without inputs for it, are passed over"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    parser.add_argument("--fail-on", default="", metavar="LIST", help=_FAIL_ON)
    parser.add_argument("--sarif", metavar="FILE", help=_SARIF)
    parser.add_argument("--baseline", type=Path, metavar="FILE", help=_BASELINE)
    parser.add_argument("--write-baseline", action="store_true", help=_WRITE)
    parser.add_argument("--allow-empty", action="store_true", help=_ALLOW)


def wanted(arguments: argparse.Namespace) -> Wanted:
    """What the arguments ask for.  Raises `gate.GateError` and `OptionError`."""
    from inductoscope.server import gate
    from inductoscope.server.ci.verdict import BaselineUse, Wanted

    if arguments.json and getattr(arguments, "sarif", None) == STANDARD_OUTPUT:
        raise OptionError("--json and --sarif - both want standard output: give --sarif a file.")
    use = BaselineUse.WRITE if getattr(arguments, "write_baseline", False) else BaselineUse.COMPARE
    path = getattr(arguments, "baseline", None)
    if use is BaselineUse.WRITE and path is None:
        raise OptionError("--write-baseline needs --baseline FILE: the file to write.")
    if use is BaselineUse.COMPARE and path is not None and not path.exists():
        raise OptionError(f"There is no baseline {path}. Make it with --write-baseline.")
    return Wanted(gate.parse(arguments.fail_on), path, use)
