"""What lowering says about failures, library calls, CUDA graphs, and how it leaves torch behind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.compat import inductor as compat  # noqa: E402
from inductoscope.compiler.lower import Depth  # noqa: E402
from inductoscope.protocol.report import KernelLanguage, Rung, Severity  # noqa: E402
from lower.support.driver import load, lower, run  # noqa: E402

pytestmark = pytest.mark.slow


def here(function: Callable[..., Any], offset: int) -> int:
    """The line `offset` lines below a function's `def`."""
    return inspect.getsourcelines(function)[1] + offset


def test_every_point_that_is_needed_exists():
    missing = [f"{point.module}:{point.path}" for point in compat.ALL_POINTS if point.required and not point.exists()]
    assert missing == []


def test_torch_is_left_as_it_was():
    def attributes():
        return {point: vars(point.owner()).get(point.name) for point in compat.ALL_POINTS if point.owner()}

    before = attributes()
    lower(lambda: torch.compile(lambda x: x.sin().sum(dim=-1))(torch.randn(4, 8)))
    assert attributes() == before


def test_graphs_only_runs_and_generates_nothing():
    results = []
    x = torch.randn(4)
    facts = lower(lambda: results.append(torch.compile(lambda x: x.sin() + 1)(x)), Depth.GRAPHS)
    assert facts.kernels == ()
    assert facts.wrappers == ()
    torch.testing.assert_close(results[0], x.sin() + 1, rtol=0, atol=0)


def test_other_backends_are_left_alone():
    facts = lower(lambda: torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.randn(4)))
    assert facts.kernels == ()


def test_an_error_in_a_lowering_is_told_on_its_line_and_the_program_goes_on(monkeypatch):
    from torch._inductor.lowering import lowerings

    def broken(*_args: Any) -> None:
        raise ValueError("no luck today")

    def program(x):
        y = x + 1
        z = torch.erfinv(y)
        return z * 2

    monkeypatch.setitem(lowerings, torch.ops.aten.erfinv.default, broken)
    x = torch.full((4,), -0.5)
    results = []
    facts = lower(lambda: results.append(torch.compile(program)(x)))
    (finding,) = facts.findings
    assert (finding.code, finding.severity, finding.rung) == ("compile-error", Severity.ERROR, Rung.LOWER)
    assert (finding.file, finding.line) == (__file__, here(program, 2))
    assert finding.message == "Inductor failed while lowering aten.erfinv: ValueError: no luck today"
    assert facts.problems == ()
    assert facts.kernels == ()
    torch.testing.assert_close(results[0], program(x), rtol=0, atol=0)


def test_an_error_of_our_own_is_not_blamed_on_the_program(monkeypatch):
    from inductoscope.compiler.lower import lowering

    def broken(*_args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(lowering, "memory_of", broken)
    facts = lower(lambda: torch.compile(lambda x: x.sin())(torch.randn(4)))
    assert facts.findings == ()
    (problem,) = facts.problems
    assert "Inductoscope could not read" in problem
    assert "ZeroDivisionError" in problem


def test_library_calls_are_told_where_generated_code_would_be_expected():
    def program(x, weight):
        y = x @ weight
        ranked = torch.sort(y, dim=-1).values
        return torch.view_as_real(torch.polar(ranked, y) * 2), torch.fft.rfft(y).real

    facts = lower(lambda: torch.compile(program)(torch.randn(4, 8), torch.randn(8, 8)))
    found = {(finding.line, finding.message.split(" ")[0]) for finding in facts.findings}
    assert {finding.code for finding in facts.findings} == {"library-kernel"}
    assert (here(program, 2), "aten.sort") in found
    assert any(one.line == here(program, 3) and "aten.mul" in one.message for one in facts.findings)
    assert not any(op in one.message for op in ("aten.mm", "aten._fft", "aten.view_as_real") for one in facts.findings)


def test_complex_numbers_are_one_finding_for_all_lines_and_both_passes():
    def program(x, y):
        z = torch.polar(x, y) * torch.polar(y, x)
        z = z + 1
        return torch.view_as_real(z * z).sum()

    def both():
        x, y = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
        torch.compile(program)(x, y).backward()

    (finding,) = (one for one in lower(both).findings if "complex" in one.message)
    assert finding.line == here(program, 1)
    assert (
        "aten.polar and aten.mul, and " in finding.message
        and " in the backward pass of this line, get" in finding.message
    )
    assert [one.line for one in finding.related] == [here(program, 2), here(program, 3)]
    assert finding.count >= 5


def test_the_same_call_on_the_same_line_is_one_finding():
    def program(x):
        for _ in range(3):
            x = torch.cumsum(x, dim=0)
        return x

    (finding,) = lower(lambda: torch.compile(program)(torch.randn(5, 4))).findings
    assert (finding.line, finding.count) == (here(program, 2), 3)


def test_cuda_graphs_on_the_cpu_are_skipped_and_why():
    facts = lower(lambda: torch.compile(lambda x: x.sin(), mode="reduce-overhead")(torch.randn(4)))
    assert facts.cudagraphs.status == "skipped"
    (finding,) = facts.findings
    assert finding.code == "cudagraphs-skipped"
    assert "CPU" in finding.message


def test_a_module_of_torch_compiled_as_it_is_is_told_where_it_is_called():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

    def call():
        torch.compile(layer, mode="reduce-overhead")(torch.randn(2, 4))

    (finding,) = lower(call).findings
    assert (finding.file, finding.line) == (__file__, here(call, 1))


def test_without_asking_for_cuda_graphs_nothing_is_said():
    facts = lower(lambda: torch.compile(lambda x: x.sin())(torch.randn(4)))
    assert facts.cudagraphs.status == "off"
    assert facts.findings == ()


def test_max_autotune_times_nothing_and_says_what_is_shown():
    layer = torch.nn.Linear(64, 64).eval()
    with torch.no_grad():
        facts = lower(
            lambda: torch.compile(layer, options={"max_autotune": True, "freezing": True})(torch.randn(32, 64))
        )
    assert facts.problems == ()
    assert [k.language for k in facts.kernels if "mm" in k.name] == [KernelLanguage.EXTERN]


def test_a_cpp_wrapper_is_generated_and_not_built():
    facts = lower(lambda: torch.compile(lambda x: x.sin() * 2, options={"cpp_wrapper": True})(torch.randn(64)))
    assert facts.problems == ()
    assert [wrapper.language for wrapper in facts.wrappers] == ["cpp"]
    (kernel,) = facts.kernels
    assert "sin" in kernel.source


def test_two_kernels_that_a_library_call_separates():
    def program(x, weight):
        y = x.relu() + 1
        return torch.exp(y @ weight)

    facts = lower(lambda: torch.compile(program)(torch.randn(4, 8), torch.randn(8, 8)))
    assert [group.kind for group in facts.fusion_groups] == ["pointwise", "extern", "pointwise"]
    assert [group.fusion for group in facts.fusion_groups] == ["vertical", "none", "none"]
    assert [op.op for op in facts.fusion_groups[0].ops] == ["aten.relu", "aten.add"]
    assert [kernel.bytes_written for kernel in facts.kernels] == [4 * 8 * 4] * 3


def test_neighbours_that_stay_apart_have_the_scheduler_s_reason():
    def program(x, weight):
        y = x.sin()
        return y @ weight, y.t().contiguous().cos().sum()

    facts = lower(lambda: torch.compile(program)(torch.randn(64, 64), torch.randn(64, 64)))
    groups = {group.id: group for group in facts.fusion_groups}
    for group in groups.values():
        for neighbour in group.apart_from:
            assert group.id in {back.group for back in groups[neighbour.group].apart_from}
            assert neighbour.reason


def test_each_graph_of_a_broken_function_has_its_own_kernels():
    def program(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    facts = lower(lambda: torch.compile(program)(torch.randn(8)))
    assert [kernel.graph for kernel in facts.kernels] == ["0/0", "1/0"]
    assert [[place.line for place in kernel.lines] for kernel in facts.kernels] == [
        [here(program, 1)],
        [here(program, 3)],
    ]


def test_a_restart_of_the_analysis_leaves_one_set_of_facts():
    def program(x, scale):
        return x * scale + 1

    def calls():
        compiled = torch.compile(program)
        for scale in (1.5, 2.5, 3.5):
            compiled(torch.randn(8), scale)

    with torch._dynamo.config.patch(specialize_float=False):
        facts = lower(calls)
    assert facts.problems == ()
    ids = [group.id for group in facts.fusion_groups]
    assert len(ids) == len(set(ids))
    graphs = [kernel.graph for kernel in facts.kernels]
    assert len(graphs) == len(set(graphs)), "one kernel a graph"


def lines_of_torch(mappings: dict[str, list[str]], file: str) -> dict[str, set[int]]:
    """The lines of `file` that torch's own provenance gives each kernel, by name; the innermost frame of each stack."""
    found: dict[str, set[int]] = {}
    for key, stacks in mappings.items():
        name = key.rsplit(":", 1)[0]
        mine = [[int(m[1]) for m in re.finditer(rf'File "{re.escape(file)}", line (\d+)', stack)] for stack in stacks]
        found.setdefault(name, set()).update(lines[-1] for lines in mine if lines)
    return found


@pytest.mark.parametrize("name", ["transformer", "conv_bn", "training"])
def test_lines_are_those_of_torch_s_own_provenance(name, monkeypatch):
    """torch's account knows sets of lines only; ours may add a line for nodes that torch leaves without one."""
    from torch._inductor import debug

    module = load(name)
    torchs: dict[str, set[int]] = {}
    dump = debug.dump_inductor_provenance_info

    def remember():
        for kernel, lines in lines_of_torch(debug._inductor_kernel_stack_trace, module.__file__).items():
            torchs.setdefault(kernel, set()).update(lines)
        return dump()

    monkeypatch.setattr(debug, "dump_inductor_provenance_info", remember)
    with torch._inductor.config.patch({"trace.provenance_tracking_level": 1}):
        facts = lower(lambda: run(module))
    generated = [kernel for kernel in facts.kernels if kernel.source]
    assert generated and torchs
    for kernel in generated:
        assert torchs[kernel.name] <= {
            place.line for same in generated if same.name == kernel.name for place in same.lines
        }


def add_to_relu(x, weight):
    made = torch.relu(x @ weight)
    made += x
    return made


def add_to_view_of_exp(x, weight):
    made = (x @ weight).exp()
    made.view(-1).mul_(2)
    other = x * 2
    other.add_(1)
    return made + other


@pytest.mark.parametrize(("program", "line", "made_by"), [(add_to_relu, 2, "Relu"), (add_to_view_of_exp, 2, "Exp")])
def test_a_value_that_the_backward_pass_needs_is_told_where_it_is_changed(program, line, made_by):
    facts = lower(lambda: torch.compile(program)(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)))
    (finding,) = facts.findings
    assert (finding.code, finding.line) == ("compile-error", here(program, line))
    assert f"that {made_by} made" in finding.message and "under torch.no_grad()" in finding.hints[0]


def test_without_gradients_changing_a_value_in_place_is_no_error():
    with torch.no_grad():
        facts = lower(lambda: torch.compile(add_to_relu)(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)))
    assert facts.findings == () and facts.kernels
