"""Files that are changed outside of the editor: gathered into bursts, and watched on disk where nobody else does.

`Gathering` turns the many events of one checkout into one answer; `DiskWatcher` hears of changes from the operating
system.  Both tell paths only: what a change means is decided where the texts are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductoscope.server.clock import Clock, Timer
from inductoscope.server.folders import PROJECT_FILE

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

logger = logging.getLogger("inductoscope.watching")

QUIET_S = 0.25
"""How long nothing may change before what changed is told."""

LONGEST_S = 2.0
"""How long changes are gathered when there is no end to them."""

_ABOVE = 3
"""Folders above that of a file that are watched too: of a folder that is renamed only the one that it is in tells."""

_CHANGES = {"created", "modified", "moved", "deleted"}
"""Events that say something; reading a file gives others."""


class Gathering:
    """Tells of changes once nothing more has changed for a moment."""

    def __init__(self, clock: Clock, tell: Callable[[frozenset[str]], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._paths: set[str] = set()
        self._since = 0.0
        self._timer: Timer | None = None

    @property
    def waiting(self) -> frozenset[str]:
        """What has changed and was not told yet."""
        return frozenset(self._paths) if self._timer is not None else frozenset()

    def notice(self, paths: Iterable[str]) -> None:
        """These files were written, made or removed."""
        before = len(self._paths)
        self._paths.update(paths)
        if not self._paths:
            return
        now = self._clock.time()
        if not before:
            self._since = now
        self.stop()
        delay = max(0.0, min(QUIET_S, self._since + LONGEST_S - now))
        self._timer = self._clock.call_later(delay, self._over)

    def stop(self) -> None:
        """Tell nothing, until more is noticed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._timer = None
        paths, self._paths = frozenset(self._paths), set()
        self._tell(paths)


class DiskWatcher:
    """Watches the folders of some files, and calls `notice` on the event loop with those that changed.

    A Python file that is new beside them is told too, as an import may mean it, and so are projects' settings.
    `on_problem` gets a sentence when the operating system refuses.  To be used on the event loop only.
    """

    def __init__(self, notice: Callable[[Iterable[str]], None], on_problem: Callable[[str], None]) -> None:
        self._notice = notice
        self._on_problem = on_problem
        self._loop: asyncio.AbstractEventLoop | None = None
        self._followed: frozenset[str] = frozenset()
        self._names: dict[str, set[str]] = {}
        self._folders: frozenset[str] = frozenset()
        self._watched: dict[str, Any] = {}
        self._observer: Any = None
        self._refused = False

    def follow(self, files: frozenset[str]) -> None:
        """From now on follow these files and no others; they need not exist."""
        if files == self._followed:
            return
        self._loop = asyncio.get_running_loop()
        self._followed = files
        self._name()
        self._arrange()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take an event of watchdog's, on whatever thread."""
        if event.event_type not in _CHANGES or (event.is_directory and event.event_type == "modified"):
            return
        if self._loop is None or self._loop.is_closed():
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        self._loop.call_soon_threadsafe(self._take, paths, event.is_directory)

    def close(self) -> None:
        """Watch nothing any more."""
        observer, self._observer = self._observer, None
        self._watched = {}
        if observer is not None:
            observer.stop()
            observer.join()

    def _name(self) -> None:
        """The names under which the disk tells of each file: a link's own folder is silent about what it points to."""
        self._names = {}
        for file in self._followed:
            for name in (file, os.path.realpath(file)):
                self._names.setdefault(name, set()).add(file)
        self._folders = frozenset(ancestors(self._names))

    def _take(self, paths: list[str], is_folder: bool) -> None:
        # A link to a folder is no folder to the disk; what is watched is the folder of a name as it was.
        folders = [path for path in paths if is_folder or path in self._folders]
        for folder in folders:
            for watched in [one for one in self._watched if f"{one}{os.sep}".startswith(f"{folder}{os.sep}")]:
                self._forget(watched)
        changed = {name for path in paths for name in self._meant(path, path in folders)}
        if folders or any(path in self._names and os.path.islink(path) for path in paths):  # noqa: PTH114
            self._name()
            self._arrange()
        if changed:
            self._notice(changed)

    def _forget(self, folder: str) -> None:
        with contextlib.suppress(KeyError, OSError):  # the disk has forgotten it already
            self._observer.unschedule(self._watched[folder])
        del self._watched[folder]

    def _meant(self, path: str, is_folder: bool) -> Iterator[str]:
        if is_folder:
            inside = path.rstrip(os.sep) + os.sep
            yield from (file for name, files in self._names.items() if name.startswith(inside) for file in files)
        elif path in self._names:
            yield from self._names[path]
        elif path.endswith(".py") or Path(path).name == PROJECT_FILE or os.path.dirname(path) in self._names:  # noqa: PTH120
            yield path

    def _arrange(self) -> None:
        wanted = {folder for name in self._names for folder in _folders(name)}
        for folder in set(self._watched) - wanted:
            self._forget(folder)
        for folder in sorted(wanted - set(self._watched)):
            self._watch(folder)

    def _watch(self, folder: str) -> None:
        try:
            self._watched[folder] = self._running().schedule(self, folder)
        except OSError as error:
            logger.warning("cannot watch folder=%s error=%s", folder, error)
            if not self._refused:
                self._refused = True
                self._on_problem(
                    f"Changes in {folder} will not be noticed ({error}). Ask for a check after such a change, or raise "
                    "the operating system's limit on watched folders (Linux: fs.inotify.max_user_watches)."
                )

    def _running(self) -> Any:
        if self._observer is None:
            from watchdog.observers import Observer  # a tenth of a second, which many sessions never need

            self._observer = Observer()
            self._observer.start()
        return self._observer


class Following:
    """Implements `ports.Follower`: what a client tells and what the disk tells become one burst.

    Files that `is_covered` by the client's own watching are left to it.
    """

    def __init__(self, clock: Clock, is_covered: Callable[[str], bool], on_problem: Callable[[str], None]) -> None:
        self._is_covered = is_covered
        self._gathering = Gathering(clock, self._changed)
        self._disk = DiskWatcher(self.notice, on_problem)
        self._tell: Callable[[frozenset[str]], None] = lambda paths: None

    def tells(self, tell: Callable[[frozenset[str]], None]) -> None:
        """Who is to be told of changes."""
        self._tell = tell

    def notice(self, paths: Iterable[str]) -> None:
        """These files were written, made or removed."""
        self._gathering.notice(paths)

    @property
    def waiting(self) -> frozenset[str]:
        """See `ports.Follower`."""
        return self._gathering.waiting

    def follow(self, files: frozenset[str]) -> None:
        """See `ports.Follower`."""
        self._disk.follow(frozenset(file for file in files if not self._is_covered(file)))

    def close(self) -> None:
        """See `ports.Follower`."""
        self._gathering.stop()
        self._disk.close()

    def _changed(self, paths: frozenset[str]) -> None:
        self._tell(paths)


def ancestors(files: Iterable[str]) -> set[str]:
    """Every folder that one of these files is in, directly or not."""
    found: set[str] = set()
    for file in files:
        folder = os.path.dirname(file)  # noqa: PTH120  # names as the operating system tells them
        while folder not in found and folder != os.path.dirname(folder):  # noqa: PTH120
            found.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    return found


def _folders(file: str) -> Iterator[str]:
    """The folder of a file and those above it, in which it may be renamed, or vanish and come back."""
    folder = os.path.dirname(file)  # noqa: PTH120
    above = 0
    while above <= _ABOVE and folder != os.path.dirname(folder):  # noqa: PTH120
        if os.path.isdir(folder):  # noqa: PTH112
            yield folder
            above += 1
        folder = os.path.dirname(folder)  # noqa: PTH120
