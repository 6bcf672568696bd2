"""What is run when files change outside of the editor, and how such changes are noticed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from watchdog.events import (
    DirCreatedEvent,
    DirModifiedEvent,
    FileClosedNoWriteEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileOpenedEvent,
    FileSystemEvent,
)

from inductoscope.server.watching import LONGEST_S, QUIET_S, DiskWatcher, Following, Gathering
from support.session import TIMEOUT_S, FakeClock, FakeRun, Harness

MODEL = """\
import torch
from torch import nn
import lib

class Model(nn.Module):
    def forward(self, x):
        return lib.f(x)

def get_inputs():
    return [torch.ones(4)]
"""


class Project:
    """A session with files on disk; `model` is open and was checked once, importing `lib`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.h = Harness()

    async def start(self, files: tuple[str, ...] = (), **texts: str) -> FakeRun:
        for name, text in {"model": MODEL, "lib": "def f(x): return x\n", **texts}.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / f"{name}.py").write_text(text)
        self.h.open(texts.get("model", MODEL), self.path("model"))
        run = await self.h.runner.next()
        run.finish(files=tuple(map(self.path, files)))
        await self.settled()
        return run

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.py")

    def write(self, name: str, text: str) -> None:
        Path(self.path(name)).write_text(text)

    def change(self, *names: str) -> None:
        self.h.session.files_changed(frozenset(map(self.path, names)))

    async def settled(self) -> None:
        await self.h.settled(self.path("model"))

    async def runs(self) -> int:
        """How many runs there were, when no more are on their way."""
        await self.h.flushed()
        for run in self.h.runner.runs:
            if not run.answer.done():
                run.finish()
        await self.settled()
        return len(self.h.runner.runs)


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_a_dependency_that_changed_outside_runs_what_depends_on_it(project: Project) -> None:
    await project.start()
    project.write("lib", "def f(x): return -x\n")
    project.change("lib")
    assert await project.runs() == 2
    project.change("lib")
    assert await project.runs() == 2, "it was told twice and changed once"


async def test_comments_and_files_of_others_run_nothing(project: Project) -> None:
    await project.start()
    project.write("lib", '# new\ndef f(x):\n    "What it does."\n    return x\n')
    project.write("stranger", "x = 1\n")
    project.change("lib", "stranger")
    assert await project.runs() == 1


async def test_a_dependency_that_vanished_and_came_back(project: Project) -> None:
    await project.start()
    Path(project.path("lib")).unlink()
    project.change("lib")
    assert await project.runs() == 2
    project.write("lib", "def f(x): return x\n")
    project.change("lib")
    assert await project.runs() == 2, "it is the program that was checked before"
    project.write("lib", "def f(x): return -x\n")
    project.change("lib")
    assert await project.runs() == 3


async def test_what_only_the_run_could_tell_is_a_dependency_and_is_followed(project: Project) -> None:
    await project.start(files=("model", "lib", "plugin"), plugin="import deep\n", deep="x = 1\n")
    assert {Path(file).stem for file in project.h.follower.files} == {"model", "lib", "plugin", "deep"}
    project.h.save(project.path("model"))
    assert await project.runs() == 1, "learning of a file is no change"
    project.write("deep", "x = 2\n")
    project.change("deep")
    assert await project.runs() == 2


async def test_only_the_targets_that_depend_on_it_are_run(project: Project) -> None:
    await project.start(other=MODEL.replace("lib.f(x)", "x").replace("import lib", ""))
    project.h.open(Path(project.path("other")).read_text(), project.path("other"))
    assert await project.runs() == 2
    project.write("lib", "def f(x): return -x\n")
    project.change("lib")
    await project.runs()
    assert [Path(run.request.target.file).stem for run in project.h.runner.runs] == ["model", "other", "model"]


async def test_an_open_file_is_what_the_editor_says_until_it_is_reloaded(project: Project) -> None:
    await project.start()
    changed = MODEL.replace("lib.f(x)", "lib.f(-x)")
    project.write("model", changed)
    project.change("model")
    assert await project.runs() == 1
    project.h.edit(changed, project.path("model"))
    assert await project.runs() == 2, "an editor that reloads a file saves nothing"
    project.h.edit(MODEL, project.path("model"))
    assert await project.runs() == 2, "this is an edit again"


async def test_a_projects_settings_are_read_again(project: Project) -> None:
    await project.start()
    (project.folder / "more").mkdir()
    (project.folder / "pyproject.toml").write_text('[tool.inductoscope]\ndevice = "sim:A100"\npaths = ["more"]\n')
    project.h.session.files_changed(frozenset({str(project.folder / "pyproject.toml")}))
    assert await project.runs() == 2
    request = project.h.runner.runs[1].request
    assert (request.device, request.search_paths) == ("sim:A100", (str(project.folder / "more"),))


async def test_what_a_closed_file_depended_on_is_not_followed(project: Project) -> None:
    await project.start(other=MODEL.replace("import lib", "import deep"), deep="")
    project.h.open(Path(project.path("other")).read_text(), project.path("other"))
    await project.runs()
    assert project.path("deep") in project.h.follower.files
    project.h.session.close(project.path("other"))
    await project.h.flushed()
    assert {Path(file).stem for file in project.h.follower.files} == {"model", "lib"}


async def test_the_end_of_the_session_ends_following() -> None:
    h = Harness()
    await h.session.shutdown()
    assert h.follower.closed


class Told(list[set[str]]):
    """Bursts, in order."""

    def take(self, paths: Iterable[str]) -> None:
        self.append(set(paths))


async def test_what_the_editor_saved_is_no_news_from_the_disk(project: Project) -> None:
    await project.start()
    project.h.follower.waiting = frozenset({project.path("model")})
    await project.settled()
    project.h.follower.waiting = frozenset({project.path("model"), project.path("lib")})
    waiting = asyncio.ensure_future(project.settled())
    await project.h.flushed()
    assert not waiting.done()
    project.h.follower.waiting = frozenset()
    project.change("lib")
    await waiting


def test_a_checkout_of_many_files_is_told_once() -> None:
    clock, told = FakeClock(), Told()
    gathering = Gathering(clock, told.take)
    for number in range(300):
        gathering.notice([f"/w/{number}.py"])
        clock.advance(QUIET_S / 1000)
    assert told == [] and len(gathering.waiting) == 300
    clock.advance(QUIET_S)
    assert told == [{f"/w/{number}.py" for number in range(300)}] and not gathering.waiting


def test_changes_without_an_end_are_told_now_and_then() -> None:
    clock, told = FakeClock(), Told()
    gathering = Gathering(clock, told.take)
    for _ in range(100):
        gathering.notice(["/w/a.py"])
        clock.advance(QUIET_S / 2)
    assert len(told) == pytest.approx(100 * QUIET_S / 2 / LONGEST_S, abs=1)


def test_nothing_is_told_of_nothing() -> None:
    clock, told = FakeClock(), Told()
    Gathering(clock, told.take).notice([])
    clock.advance(10 * LONGEST_S)
    assert told == []


FILE, OTHER = "/w/lib.py", "/w/notes.txt"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (FileModifiedEvent(FILE), {FILE}),
        (FileCreatedEvent(FILE), {FILE}),
        (FileDeletedEvent(FILE), {FILE}),
        (FileMovedEvent("/w/.lib.py.tmp", FILE), {FILE}),  # how editors save
        (FileMovedEvent(FILE, "/w/old.py"), {FILE, "/w/old.py"}),
        (FileCreatedEvent("/w/new.py"), {"/w/new.py"}),
        (FileModifiedEvent("/w/pyproject.toml"), {"/w/pyproject.toml"}),
        (FileModifiedEvent(OTHER), None),
        (FileOpenedEvent(FILE), None),
        (FileClosedNoWriteEvent(FILE), None),
        (DirModifiedEvent("/w"), None),
        (DirCreatedEvent("/w"), {FILE}),
    ],
)
async def test_what_an_event_of_the_disk_says(event: FileSystemEvent, told: set[str] | None) -> None:
    bursts = Told()
    watcher = DiskWatcher(bursts.take, bursts.take)
    watcher.follow(frozenset({FILE}))
    watcher.dispatch(event)
    await asyncio.sleep(0)
    assert bursts == ([] if told is None else [told])


async def test_a_linked_file_is_told_by_the_name_it_is_followed_by(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "lib.py", tmp_path / "lib.py"
    real.parent.mkdir()
    real.touch()
    link.symlink_to(real)
    bursts = Told()
    watcher = DiskWatcher(bursts.take, bursts.take)
    watcher.follow(frozenset({str(link)}))
    watcher.dispatch(FileModifiedEvent(os.path.realpath(real)))
    await asyncio.sleep(0)
    watcher.close()
    assert bursts == [{str(link)}]


async def test_a_disk_that_cannot_be_watched_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers import Observer

    def refuse(*_: object, **__: object) -> None:
        raise OSError("inotify watch limit reached")

    monkeypatch.setattr(Observer, "schedule", refuse)
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(str(tmp_path / name / "m.py"))
    problems: list[str] = []
    watcher = DiskWatcher(lambda paths: None, problems.append)
    watcher.follow(frozenset(files))
    watcher.close()
    assert len(problems) == 1 and "will not be noticed (inotify watch limit reached)" in problems[0]


async def test_a_real_disk(tmp_path: Path) -> None:
    """Writing, replacing, removing and bringing back the folder of a package, as a checkout does."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    file = package / "lib.py"
    file.touch()
    heard = asyncio.Event()

    def notice(paths: Iterable[str]) -> None:
        if str(file) in paths:
            heard.set()

    async def after(change: object) -> None:
        await asyncio.wait_for(heard.wait(), TIMEOUT_S)
        heard.clear()

    watcher = DiskWatcher(notice, lambda problem: None)
    watcher.follow(frozenset({str(file)}))
    try:
        await after(file.write_text("x = 1\n"))
        (package / "tmp").write_text("x = 2\n")
        await after((package / "tmp").replace(file))
        await after(file.unlink())
        (package / "__init__.py").unlink()
        package.rmdir()
        package.mkdir()
        await after((package / "lib.py").write_text("x = 3\n"))
    finally:
        watcher.close()


async def test_what_the_client_watches_is_left_to_it_and_both_make_one_burst() -> None:
    clock, told = FakeClock(), Told()
    following = Following(clock, lambda path: path.startswith("/w/"), lambda problem: None)
    following.tells(told.take)
    following.follow(frozenset({"/w/model.py", "/else/lib.py"}))
    assert following._disk._followed == {"/else/lib.py"}
    following.notice(["/w/model.py"])
    following._disk.dispatch(FileModifiedEvent("/else/lib.py"))
    await asyncio.sleep(0)
    clock.advance(QUIET_S)
    following.close()
    assert told == [{"/w/model.py", "/else/lib.py"}]


@pytest.mark.parametrize("form", ["plain folder", "package in a package", "link to a folder"])
async def test_a_folder_that_goes_and_comes_back_on_a_real_disk(tmp_path: Path, form: str) -> None:
    outer = tmp_path / "outer"
    folder = outer / "inner"
    folder.mkdir(parents=True)
    if form == "package in a package":
        for package in (outer, folder):
            (package / "__init__.py").touch()
    if form == "link to a folder":
        for version in ("v1", "v2"):
            (tmp_path / version).mkdir()
            (tmp_path / version / "lib.py").write_text(version)
        folder.rmdir()
        folder.symlink_to(tmp_path / "v1")
    file = folder / "lib.py"
    file.write_text("x = 1\n")
    heard = asyncio.Event()
    watcher = DiskWatcher(lambda paths: heard.set() if str(file) in paths else None, lambda problem: None)

    async def after(change: object) -> None:
        await asyncio.wait_for(heard.wait(), TIMEOUT_S)
        heard.clear()

    watcher.follow(frozenset({str(file)}))
    try:
        if form == "link to a folder":
            folder.unlink()
            await after(folder.symlink_to(tmp_path / "v2"))
            await after((tmp_path / "v2" / "lib.py").write_text("x = 2\n"))
        else:
            await after(outer.rename(tmp_path / "away"))
            await after((tmp_path / "away").rename(outer))
            await after(file.write_text("x = 2\n"))
            await after(file.write_text("x = 3\n"))
    finally:
        watcher.close()


async def test_a_removed_folder_stands_for_the_files_in_it(project: Project) -> None:
    await project.start(model="import pkg.lib\n" + MODEL, **{"pkg/__init__": "", "pkg/lib": "x = 1\n"})
    shutil.rmtree(project.folder / "pkg")
    project.h.session.files_changed(frozenset({str(project.folder / "pkg")}))
    assert await project.runs() == 2


async def test_what_no_program_could_use_is_passed_over(project: Project) -> None:
    await project.start()
    project.h.session.files_changed(frozenset({str(project.folder / "data.bin"), str(project.folder / ".git")}))
    assert await project.runs() == 1
