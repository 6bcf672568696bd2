"""What is told of torch's caches against what torch itself does: keys, hits, misses and refusals.

The program runs plainly, in processes of its own with a cache folder of its own, before and after it is checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inductoscope.protocol.messages import Memory, Run, Target, TargetKind
from inductoscope.protocol.report import CacheFact, Phase, Rung
from support.raw_worker import do

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # three or four processes each, one after the other

PLAIN = """
import importlib, json, logging, re, sys, torch
told = []
class Listener(logging.Handler):
    def emit(self, record):
        fields = getattr(record, "metadata", {})
        name = fields.get("artifact", {}).get("name", "")
        found = re.fullmatch("(fx_graph|aotautograd)_cache_(hit|miss|bypass)", name)
        if found:
            payload = json.loads(record.payload)
            graph = f"{fields['frame_id']}/{fields['frame_compile_id']}"
            told.append([found[1].replace("aota", "aot_a"), graph, found[2], payload.get("key")])
logging.getLogger("torch.__trace").addHandler(Listener())
module = importlib.import_module(sys.argv[1])
module.exercise(module.fn)
print("TOLD", json.dumps(told))
"""

HEAD = "import torch\nfrom torch import nn\n"
TRAINING = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)
    def forward(self, x):
        return self.second(torch.relu(self.first(x))).sum(-1)
fn = torch.compile(Net())
def exercise(fn):
    for size in (8, 24, 40):
        fn(torch.randn(size, 16)).sum().backward()
    with torch.no_grad():
        fn(torch.randn(8, 16))
"""
)
OPTIONS = (
    HEAD
    + """
@torch.compile(options={"epilogue_fusion": False, "max_autotune_pointwise": True}, dynamic=True)
def fn(x, y):
    return torch.softmax(x @ y, -1) * torch.arange(4, dtype=x.dtype).sum()
def exercise(fn):
    fn(torch.randn(6, 8), torch.randn(8, 5))
"""
)
AUTOCAST = (
    HEAD
    + """
@torch.compile
def fn(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x).float() + 1
def exercise(fn):
    fn(torch.randn(8, 8))
"""
)
TWICE = (
    HEAD
    + """
@torch.compile
def fn(x):
    x = x.sin() * 2
    print("a break")
    return x.sin() * 2
def exercise(fn):
    fn(torch.randn(8))
"""
)


def plain(folder: Path, caches: Path) -> list[tuple[str, str, str, str | None]]:
    """(cache, graph, result, key) for each time that torch asked a cache, in a process that runs only the program."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(caches), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", PLAIN, "cached_model"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("TOLD "))
    return sorted(map(tuple, json.loads(line.removeprefix("TOLD "))), key=str)


def checked(
    file: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, memory: Memory | None = None
) -> tuple[tuple[CacheFact, ...], Memory]:
    """What a run of ours tells, and what it wants to be told next time."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(caches))
    target = Target(str(file), "fn", 1, TargetKind.OBJECT, "fn")
    talk = do(Run(1, target, "cpu", Rung.LOWER, memory=memory or Memory()))
    return talk.report.caches, talk.messages[-1].memory


def account(facts: tuple[CacheFact, ...]) -> list[tuple[str, str, str, str | None]]:
    graphs = (fact for fact in facts if fact.cache in ("aot_autograd", "fx_graph"))
    return sorted(((fact.cache, fact.graph, fact.result, fact.key) for fact in graphs), key=str)


def of(cache: str, facts: tuple[CacheFact, ...]) -> list[CacheFact]:
    return [fact for fact in facts if fact.cache == cache]


@pytest.mark.parametrize("text", [TRAINING, OPTIONS, AUTOCAST], ids=["training", "options", "autocast"])
def test_keys_and_results_are_those_of_torch(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, caches = tmp_path / "cached_model.py", tmp_path / "caches"
    file.write_text(text)
    first = plain(tmp_path, caches)
    before = sorted(caches.rglob("*"))
    facts, _ = checked(file, caches, monkeypatch)
    assert sorted(caches.rglob("*")) == before  # it is only looked into
    assert account(facts) == plain(tmp_path, caches)
    assert {one[2] for one in first} <= {"miss", "bypass"}
    assert {fact.result for fact in facts if fact.cache == "fx_graph"} == {"hit"}
    libraries = len(list(caches.rglob("*.main.so")))
    built = of("cpp_code", facts)
    assert {fact.result for fact in built} == {"hit"}
    assert sum(int(fact.because[0].split()[0]) for fact in built) >= libraries > 0  # several graphs may share one


def test_a_graph_like_an_earlier_one_of_the_run_is_a_hit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, caches = tmp_path / "cached_model.py", tmp_path / "caches"
    file.write_text(TWICE)
    facts, _ = checked(file, caches, monkeypatch)
    told = [(cache, graph, result) for cache, graph, result, _ in account(facts)]
    assert told == [one[:3] for one in plain(tmp_path, caches)]
    assert [fact.result for fact in facts if fact.cache == "fx_graph"] == ["miss", "hit"]


def test_a_refused_graph_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "cached_model.py"
    file.write_text(AUTOCAST)
    facts, _ = checked(file, tmp_path / "caches", monkeypatch)
    (refused,) = (fact for fact in facts if fact.result == "bypass")
    assert (refused.cache, refused.file, refused.line) == ("aot_autograd", str(file), 6)
    assert "_enter_autocast" in refused.because[0] and "0x" not in refused.because[0]


def test_an_edit_is_told_as_what_became_different_since_the_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, caches = tmp_path / "cached_model.py", tmp_path / "caches"
    file.write_text(OPTIONS)
    first, memory = checked(file, caches, monkeypatch)
    assert not caches.exists()
    assert {fact.result for fact in first if fact.graph} == {"miss"}
    assert [fact.because for fact in of("cpp_code", first)] == [(f"0 of 1 C++ library lies built in {caches}",)]
    same, _ = checked(file, caches, monkeypatch, memory)
    assert all(fact.because[-1] == "made of the same as in the run before" for fact in of("fx_graph", same))
    file.write_text(OPTIONS.replace('"epilogue_fusion": False, ', "").replace("softmax", "log_softmax"))
    edited, _ = checked(file, caches, monkeypatch, memory)
    for fact in (*of("fx_graph", edited), *of("aot_autograd", edited)):
        assert fact.phase is Phase.FORWARD
        assert fact.because[-1].startswith("compared with the run before: ")
        assert "the graph's code differs" in fact.because[-1]
        assert "torch._inductor.config.epilogue_fusion is True instead of False" in fact.because[-1]
        assert "inputs" not in fact.because[-1]


def test_a_profile_of_an_earlier_run_tells_which_sizes_are_dynamic_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file, caches = tmp_path / "cached_model.py", tmp_path / "caches"
    file.write_text(TRAINING)
    (off,) = of("pgo", checked(file, caches, monkeypatch)[0])
    assert (off.result, "job id" in off.because[0]) == ("off", True)
    monkeypatch.setenv("TORCH_COMPILE_JOB_ID", "a job")
    (miss,) = of("pgo", checked(file, caches, monkeypatch)[0])
    assert (miss.result, miss.because[0].startswith("no profile in ")) == ("miss", True)
    plain(tmp_path, caches)
    (hit,) = of("pgo", checked(file, caches, monkeypatch)[0])
    assert hit.result == "hit"
    assert hit.because[0].endswith("which they are not here: x.shape[0]")
    again = {graph for _, graph, *_ in plain(tmp_path, caches)}
    assert again == {"0/0", "0/1"}  # torch agrees: the second size compiles nothing, only the change of grad mode does
    file.write_text(TRAINING + "# an edit\n")
    (other,) = of("pgo", checked(file, caches, monkeypatch)[0])
    assert (other.result, other.because[0].endswith("says nothing of this code")) == ("miss", True)
