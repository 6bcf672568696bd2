"""What there is to check: from paths and names to targets with the settings that hold for their files.

Reads files and runs nothing.  What cannot be read is a sentence in `Plan.problems`, never an exception; only settings
that make everything pointless raise `CheckError`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path

from inductoscope.protocol import own_devices
from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.devices import UnknownDeviceError
from inductoscope.protocol.messages import Target
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Rung
from inductoscope.server import config, recorded_inputs, sources, words
from inductoscope.server.config import Probing
from inductoscope.server.targets import Scan, ScannedTarget, scan


class CheckError(ValueError):
    """Nothing can be checked; the message is a sentence."""


class Empty(enum.Enum):
    """What a file or folder with nothing to compile is."""

    PROBLEM = "problem"
    PASSED_OVER = "passed over"


class Caching(enum.Enum):
    """Whether an earlier run of the same program may answer."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class Options:
    """What to check and how; None where the project's settings or the defaults decide.

    `targets` are names to restrict the check to; empty means all.  `what_if` are sets of inputs to ask about after each
    run, see `messages.Run`.  `probe` says whether other sizes are tried.  `kernel` is a part of the names of kernels
    that are assembled before all others.  `own` are GPUs that the command line describes, beside those of the projects.
    `empty` says what files without anything to compile are, `caching` whether earlier runs may answer.
    """

    paths: tuple[Path, ...]
    targets: tuple[str, ...] = ()
    device: str | None = None
    rung: Rung | None = None
    python: str | None = None
    timeout_s: float | None = None
    bench_seconds: float = 2.0
    bench: BenchOptions = field(default_factory=BenchOptions)
    what_if: tuple[str, ...] = ()
    probe: Probing | None = None
    kernel: str | None = None
    own: tuple[OwnDevice, ...] = ()
    empty: Empty = Empty.PROBLEM
    caching: Caching = Caching.OFF

    def device_in(self, settings: config.Config) -> tuple[str, OwnDevice | None]:
        """The device of a project's files, and the GPU that it names where somebody described it.

        Raises `CheckError` for one that is not known there.
        """
        try:
            return own_devices.named(self.device or settings.device or "auto", (*self.own, *settings.own))
        except UnknownDeviceError as error:
            raise CheckError(f"--device: {error}") from None


@dataclass(frozen=True)
class Job:
    """One target with the settings that hold for its file."""

    scanned: ScannedTarget
    scan: Scan
    settings: config.Config

    @property
    def target(self) -> Target:
        """What is compiled."""
        return self.scanned.target


@dataclass
class Plan:
    """Jobs in the order of the files, and a sentence for each thing that cannot be checked.

    `files` are all files that were looked at; of those in `unread` it is not known what they hold.
    """

    jobs: list[Job] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)


def plan(options: Options) -> Plan:
    """Read everything that `options` names.  Raises `CheckError` for a project whose settings cannot be used."""
    made = Plan()
    folders: dict[Path, config.Config] = {}
    for path in options.paths:
        try:
            files = sources.python_files(path)
        except sources.SourceError as error:
            made.problems.append(str(error))
            continue
        found = sum([_scan_file(made, options, file.resolve(), folders, path.is_dir()) for file in files])
        if not found and path.is_dir() and options.empty is Empty.PROBLEM:
            made.problems.append(_no_target(f"{path}, in its {words.count(len(files), 'Python file')},", options))
    named = {name for job in made.jobs for name in _names(job.target)}
    unknown = [name for name in options.targets if name not in named]
    if unknown and not made.problems:
        made.problems.append(f"There is nothing called {', '.join(unknown)} in {', '.join(map(str, options.paths))}.")
    return made


def _scan_file(made: Plan, options: Options, file: Path, folders: dict[Path, config.Config], walked: bool) -> int:
    """Plan what a file holds; how many targets that is.  In a folder, files without any are nothing special."""
    try:
        if file.parent not in folders:
            folders[file.parent] = config.nearest(file.parent)
            options.device_in(folders[file.parent])
        settings = folders[file.parent]
        if walked and settings.excludes(file):
            return 0
        made.files.add(str(file))
        text = sources.read_text(file)
    except config.ConfigError as error:
        raise CheckError(str(error)) from None
    except sources.SourceError as error:
        made.unread.add(str(file))
        made.problems.append(str(error))
        return 0
    scanned = recorded_inputs.fill(scan(text, str(file), (*settings.wanted(file), *options.targets)), str(file), text)
    chosen = [found for found in scanned.targets if _asked_for(found.target, options.targets)]
    made.jobs += [Job(found, scanned, settings) for found in chosen]
    errors = [
        f"{file}:{finding.line}: {finding.message}" for finding in scanned.findings if finding.code == "scan-error"
    ]
    if errors:
        made.unread.add(str(file))
        made.problems += errors
    named_in_vain = not chosen and not walked and not scanned.findings and not options.targets
    if named_in_vain and options.empty is Empty.PROBLEM:
        made.problems.append(_no_target(str(file), options))
    return len(chosen)


def _no_target(where: str, options: Options) -> str:
    if options.targets:
        return f"{where} has nothing called {' or '.join(options.targets)}."
    return (
        f"{where} has nothing to compile: no torch.compile, no Model with get_inputs(), no `# inductoscope:` comment. "
        "Name something with --target, or add one of these."
    )


def _names(target: Target) -> set[str]:
    return {target.name, target.entry}


def _asked_for(target: Target, names: tuple[str, ...]) -> bool:
    return not names or not _names(target).isdisjoint(names)
