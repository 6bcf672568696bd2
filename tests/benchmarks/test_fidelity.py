"""The comparison of a simulated GPU with a real one: its arithmetic, and the simulation against what is stored."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fidelity_tools import compare, record

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"

TEXT = "@triton_heuristics.pointwise(inductor_meta={'backend_hash': 'AB12', 'kernel_num_gb': 1})"
TIMED = record.Timed(10.0, {"XBLOCK": 128, "num_warps": 4}, 30, 0, 0, 2, 0.1)
BUILT = record.Assembled({"XBLOCK": 128, "num_warps": 4}, 30, 0, 0)


def program(**facts: object) -> record.ProgramRecord:
    return record.ProgramRecord(**{"group": "pointwise", "seconds": 1.0, **facts})


def test_a_kernel_is_the_same_whatever_machine_built_triton() -> None:
    other = TEXT.replace("AB12", "CD34")
    assert record.kernel_text(TEXT) == record.kernel_text(other)
    assert record.kernel_text(TEXT) != record.kernel_text(TEXT.replace("_gb': 1", "_gb': 2"))


def test_a_wrapper_is_the_same_in_whatever_folder() -> None:
    one = "# kernel path: /tmp/a/x.py\nbuf = extern_kernels.mm(a, b)  # Source node to ATen\n"
    other = "# kernel path: /home/b/y.py\nbuf = extern_kernels.mm(a, b)  # Source node of mine\n"
    assert record.wrapper_text(one) == record.wrapper_text(other)
    assert record.wrapper_text(one) != record.wrapper_text(one.replace("mm", "bmm"))


def test_library_calls_are_read_from_code_and_not_from_comments() -> None:
    wrapper = "  # extern_kernels.mm(no)\nextern_kernels.addmm(a)\nx = torch.ops.aten.sort.stable(y)\n"
    assert record.calls_in(wrapper) == ("extern_kernels.addmm", "torch.ops.aten.sort.stable")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    kernel = record.KernelRecord("k", "0" * 64, TIMED, (BUILT,), 9.5, (8.0, 12.0))
    call = record.LibraryCall("mm", ("f32[4, 4]:[4, 1]",), 5.5)
    written = {"a.b": program(kernels=(kernel,), calls=(("mm",), ()), library=(call,), looked=(0.25,))}
    record.write(tmp_path / "x.json", {"device": "d"}, written, None)
    assert record.read([tmp_path / "x.json"]) == ({"device": "d"}, written)


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": (record.KernelRecord("k", "1" * 64),)},
        {"kernels": ()},
        {"wrappers": ("w",)},
        {"calls": (("mm",),)},
        {"looked": (2.0,)},
        {"error": "RuntimeError: no"},
    ],
)
def test_every_sort_of_difference_is_told(change: dict[str, object]) -> None:
    one = program(kernels=(record.KernelRecord("k", "0" * 64),), looked=(1.0,))
    same = compare.compare({"p": one}, {"p": one})
    assert same.programs == (1, 1)
    assert not same.differences
    verdict = compare.compare({"p": one}, {"p": replace(one, **change)})
    assert verdict.programs == (0, 1)
    assert [difference.program for difference in verdict.differences] == ["p"]


def test_numbers_that_a_card_sums_in_another_order_are_the_same() -> None:
    verdict = compare.compare({"p": program(looked=(1.0,))}, {"p": program(looked=(1.0004,))})
    assert verdict.values == (1, 1)


def test_the_winning_configuration_is_looked_for_among_those_built() -> None:
    real = program(kernels=(record.KernelRecord("k", "0" * 64, TIMED),))
    built = program(kernels=(record.KernelRecord("k", "0" * 64, None, (replace(BUILT, config={"XBLOCK": 1}), BUILT)),))
    spilled = program(kernels=(record.KernelRecord("k", "0" * 64, None, (replace(BUILT, spills=8),)),))
    assert compare.compare({"p": real}, {"p": built}).resources == (1, 1)
    assert compare.compare({"p": real}, {"p": spilled}).resources == (0, 1)


def test_a_program_on_one_side_only_is_named_and_not_judged() -> None:
    verdict = compare.compare({"p": program()}, {"q": program()})
    assert verdict.only_one_side == ("p", "q")
    assert verdict.programs == (0, 0)


def test_accuracy_counts_both_directions() -> None:
    found = compare.accuracy([(10, 10), (10, 12), (10, 30), (30, 10)])
    assert found is not None
    assert (found.count, found.within_1_25, found.within_2) == (4, 0.5, 0.5)
    assert compare.accuracy([]) is None


def test_there_are_programs_of_every_group_and_the_stored_results_are_of_these() -> None:
    _, real = record.read([DATA / "fidelity-h200-torch-2.11.json"])
    groups = {path.stem for path in (ROOT / "benchmarks/fidelity_programs").glob("*.py")} - {"__init__", "kit"}
    assert {one.group for one in real.values()} == groups
    assert len(real) >= 150
    assert not [name for name, one in real.items() if one.error]


def _stored() -> Path | None:
    """What was recorded with the torch of this environment."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    minor = ".".join(torch.__version__.split(".")[:2])
    return next(iter(sorted(DATA.glob(f"fidelity-*-torch-{minor}.json"))), None)


@pytest.mark.slow
def test_the_simulation_still_generates_what_is_stored(tmp_path: Path) -> None:
    """Against the real card where its torch is installed here, else against the simulation's own last state."""
    stored = _stored()
    if stored is None:
        pytest.skip("nothing is stored for this version of torch")
    out = tmp_path / "now.json"
    real = "-sim-" not in stored.name
    device = str(DATA / "device-h200.json") if real else "H200"  # with what the card decided by timing
    command = [sys.executable, str(ROOT / "benchmarks/fidelity.py"), "sim", str(out), "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (_, then), (_, now) = record.read([stored]), record.read([out])
    verdict = compare.compare(then, now)
    explained = json.loads((DATA / "fidelity-explained.json").read_text(encoding="utf-8"))
    allowed = set(explained) if real else set()
    assert verdict.programs[1] == len(now)
    assert {difference.program for difference in verdict.differences} <= allowed, verdict.differences
