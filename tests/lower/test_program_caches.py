"""Caches of kernels: what lies in a folder that looks like torch's own, and what is told without one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.compat import kernel_caches, remote_caches  # noqa: E402
from inductoscope.compiler.lower.cache_log import UsersCaches  # noqa: E402
from inductoscope.compiler.lower.program_caches import ProgramCaches  # noqa: E402
from inductoscope.protocol.report import CacheFact, Kernel, KernelLanguage, Launch, Phase  # noqa: E402

pytestmark = pytest.mark.slow


def kernel(name: str, configs: int = 2) -> Kernel:
    source = f"def {name}(): pass"
    launch = Launch(grid=None, num_warps=None, num_stages=None, configs=configs)
    return Kernel(name, KernelLanguage.TRITON, Phase.FORWARD, "0/0", source, (), launch=launch)


def facts(users: UsersCaches, *kernels: Kernel, **settings: object) -> dict[str, CacheFact]:
    of = ProgramCaches(users, lambda _: contextlib.nullcontext())
    of.compiling("0/0", 0, settings)
    return {fact.cache: fact for fact in of.facts(kernels)}


def timed(folder: Path, of: Kernel, best: dict[str, object]) -> None:
    """Write what torch itself writes once it has timed a kernel."""
    from torch._inductor.codecache import code_hash
    from torch._inductor.runtime.autotune_cache import AutotuneCache

    key = code_hash(of.source.strip())
    file = folder / key[1:3] / f"{key}.py"
    file.parent.mkdir(parents=True)
    made = AutotuneCache.create({"autotune_local_cache": True}, str(file), "")
    made.local_cache[0].put(made.local_cache[1], best)


def test_a_timed_configuration_is_found_beside_its_kernel(tmp_path: Path):
    one, other, single = kernel("one"), kernel("other"), kernel("single", 1)
    timed(tmp_path, one, {"XBLOCK": 512, "num_warps": 4, "configs_hash": "x", "time_taken_ms": 3})
    told = facts(UsersCaches(tmp_path), one, other, single)["autotune"]
    assert told.result == "miss" and told.graph == "0/0"
    assert told.because == (f"1 of 2 kernels have a timed configuration in {tmp_path}", "one: XBLOCK=512, num_warps=4")
    assert facts(UsersCaches(tmp_path), one, single)["autotune"].result == "hit"
    assert facts(UsersCaches(tmp_path), one, autotune_local_cache=False)["autotune"].result == "off"
    assert "autotune" not in facts(UsersCaches(tmp_path), single)


def test_a_broken_file_is_no_timed_configuration(tmp_path: Path):
    one = kernel("one")
    timed(tmp_path, one, {"XBLOCK": 512})
    for path in tmp_path.rglob("*.best_config"):
        path.write_text("{")
    assert facts(UsersCaches(tmp_path), one)["autotune"].result == "miss"


def test_what_lies_on_another_machine_is_unknown_and_what_is_set_is_not():
    told = facts(UsersCaches(None), kernel("one"), bundle_triton_into_fx_graph_cache=False, fx_graph_remote_cache=True)
    assert {told[cache].result for cache in ("autotune", "triton")} == {"unknown"}
    assert told["triton_bundle"].result == told["pgo"].result == told["remote_pgo"].result == "off"
    assert told["remote_fx_graph"].result == "unknown"
    assert told["remote_fx_graph"].because[1] == "torch._inductor.config.fx_graph_remote_cache is True"


def test_tritons_own_cache_is_where_the_user_puts_it(tmp_path: Path):
    users = UsersCaches(tmp_path / "inductor", triton=tmp_path / "triton")
    assert facts(users, kernel("one"))["triton"].because == (f"nothing was ever built in {tmp_path / 'triton'}",)
    (tmp_path / "triton" / "ABC").mkdir(parents=True)
    assert facts(users, kernel("one"))["triton"].result == "unknown"


def test_a_program_that_compiled_nothing_asks_nothing():
    assert ProgramCaches(UsersCaches(None), lambda _: contextlib.nullcontext()).facts(()) == ()


def test_this_torch_has_the_settings_and_points():
    assert {one.cache for one in remote_caches.remote_caches({})} >= {"remote_fx_graph", "remote_aot_autograd"}
    assert all(point.exists() for point in kernel_caches.ALL_POINTS)
