"""Reports as text for people, plain and at a width that is known."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

from rich.console import Console, RenderableType

from inductoscope.protocol.report import (
    Agreement,
    Benchmark,
    Finding,
    FusionGroup,
    Graph,
    GraphBreak,
    GroupOp,
    GuardFailure,
    InputSet,
    Kernel,
    KernelLanguage,
    LineMapping,
    Numerics,
    Outcome,
    Phase,
    Place,
    Predicted,
    Recompile,
    Related,
    Report,
    Rung,
    Severity,
    Status,
    TargetReport,
    Timing,
)
from inductoscope.server import words
from inductoscope.server.text import advice
from inductoscope.server.text import report as text_of
from inductoscope.server.text.view import Part, View

FILE = "/work/model.py"
SOURCE = {(FILE, 20): "\tif x.sum() > 0:  # é", (FILE, 4): "def f(x):"}
PLAIN = TargetReport(FILE, "Model.forward", 12, "sim:H200", Rung.ASSEMBLE, Status.COMPILED)


def text(content: RenderableType, width: int = 100) -> str:
    console = Console(width=width, color_system=None, force_terminal=False, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(content, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().split("\n"))


def shown(report: TargetReport, *parts: Part, width: int = 100) -> str:
    view = View(frozenset(parts), Path("/work"), lambda file, line: SOURCE.get((file, line), ""))
    return text(text_of.target(report, view), width)


def expected(block: str) -> str:
    return textwrap.dedent(block).strip("\n").expandtabs(8)


def kernel(name: str, graph: str = "0/0", **changes: object) -> Kernel:
    language = KernelLanguage.EXTERN if name.startswith("extern") else KernelLanguage.TRITON
    plain = Kernel(name, language, Phase.FORWARD, graph, None, (Place(FILE, 14),))
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def group(number: int, name: str, graph: str = "0/0", kind: str = "pointwise", fusion: str = "vertical") -> FusionGroup:
    ops = (GroupOp("aten.add", FILE, 14), GroupOp("aten.mul", FILE, 14), GroupOp("aten.add", FILE, 14),
           GroupOp("aten.relu", "/work/lib.py", 3), GroupOp("prims.iota", None, None))  # fmt: skip
    return FusionGroup(f"{graph}:{number}", name, kind, fusion, ops)


def test_a_finding_with_excerpt_caret_hints_and_call_chain() -> None:
    finding = Finding(
        "graph-break",
        Severity.WARNING,
        FILE,
        20,
        4,
        20,
        15,
        "Data-dependent branching.",
        Rung.CAPTURE,
        id="GB0170",
        link="https://example.org/gb0170",
        related=(Related("/work/lib.py", 3, "called from here"),),
        outcome=Outcome.FUNCTION_EAGER,
        function="forward",
        hints=("Use torch.where.",),
    )
    graph_break = GraphBreak(FILE, 20, 20, 4, 15, "GB0170", "r", "e", (), None, (), Outcome.FUNCTION_EAGER)
    report = dataclasses.replace(PLAIN, status=Status.PARTIAL, findings=(finding,), breaks=(graph_break,))
    assert shown(report).expandtabs(8) == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  partial

          warning graph-break GB0170  model.py:20:5 in forward  [whole function runs eagerly]
            20 | \tif x.sum() > 0:  # é
               | \t   ^^^^^^^^^^^
            Data-dependent branching.
            hint: Use torch.where.
            called from lib.py:3
            see https://example.org/gb0170
        """
    )


def test_a_finding_without_columns_underlines_the_line_and_one_without_a_file_has_no_excerpt() -> None:
    finding = Finding("recompile", Severity.INFORMATION, FILE, 4, 0, 4, 0, "Recompiled.", Rung.CAPTURE)
    elsewhere = dataclasses.replace(finding, file="/gone.py", message="Recompiled too.")
    assert shown(dataclasses.replace(PLAIN, findings=(finding, elsewhere))) == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  compiled

          info recompile  model.py:4:1
             4 | def f(x):
               | ^^^^^^^^^
            Recompiled.

          info recompile  /gone.py:4:1
            Recompiled too.
        """
    )


def test_the_header_counts_first_versions_and_equal_input_sets() -> None:
    report = dataclasses.replace(
        PLAIN,
        inputs=(InputSet("get_input_sets", ("f32[4]", "True")),) * 2 + (InputSet("exercise"),),
        graphs=(Graph("0/0", "f", FILE, 4, 30), Graph("1/0", "g", FILE, 9, 7), Graph("0/1", "f", FILE, 4, 30)),
        kernels=(
            kernel("triton_a", predicted=Predicted(1.5, "memory", "roofline")),
            kernel("extern_kernels.mm"),
            kernel("triton_a", "0/1"),
            kernel("triton_b", phase=Phase.BACKWARD),
        ),
        recompiles=(Recompile(FILE, 4, "f", "0/1", 1, ()),),
    )
    assert shown(report).split("\n\n")[0] == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  compiled
          2 graphs, 37 ops -> 1 kernel, 1 library call, 0 breaks, 1 recompile
          inputs: f32[4], True (get_input_sets), 2 times
          inputs: no arguments (exercise)
          not shown: 1 graph of recompiles
        """
    )


def test_the_table_of_fusion_groups() -> None:
    report = dataclasses.replace(
        PLAIN,
        graphs=(Graph("0/0", "forward", FILE, 12, 5),),
        fusion_groups=(
            group(0, "triton_poi_fused_add_0"),
            group(1, "extern_kernels.mm", kind="extern", fusion="none"),
            group(2, "nothing", kind="nop"),
            group(3, "triton_red_fused_1", kind="reduction"),
        ),
        kernels=(
            kernel("triton_poi_fused_add_0", predicted=Predicted(1.5, "memory", "roofline")),
            kernel("extern_kernels.mm"),
            kernel("triton_red_fused_1", phase=Phase.BACKWARD),
        ),
    )
    assert shown(report) == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  compiled
          1 graph, 5 ops -> 1 kernel, 1 library call, 0 breaks

          graph 0/0 of forward (model.py:12), 5 ops

           kernel                   kind        operators by line                      fused      predicted
           ────────────────────────────────────────────────────────────────────────────────────────────────
           triton_poi_fused_add_0   pointwise   14: add x2, mul; lib.py:3: relu;       vertical     1.50 µs
                                                iota
           extern_kernels.mm        library     14: add x2, mul; lib.py:3: relu;       -                  -
                                                iota

          not shown: backward, 1 kernel (--show backward)
        """
    )
    assert "triton_red_fused_1" in shown(report, Part.BACKWARD)


def test_library_calls_of_both_passes_share_a_name_and_are_told_apart() -> None:
    def called(us: float, phase: Phase) -> Kernel:
        return kernel("extern_kernels.mm", phase=phase, predicted=Predicted(us, "floor", "roofline"))

    report = dataclasses.replace(
        PLAIN,
        graphs=(Graph("0/0", "f", FILE, 12, 5),),
        fusion_groups=tuple(group(number, "extern_kernels.mm", kind="extern", fusion="none") for number in range(3)),
        kernels=(called(1.0, Phase.FORWARD), called(2.0, Phase.FORWARD), called(5.0, Phase.BACKWARD)),
    )
    forward, both = shown(report), shown(report, Part.BACKWARD)
    assert [time in forward for time in ("1.00 µs", "2.00 µs", "5.00 µs")] == [True, True, False]
    assert "not shown: backward, 1 library call (--show backward)" in forward
    assert "5.00 µs" in both


def test_what_a_loop_repeats_is_one_row() -> None:
    report = dataclasses.replace(
        PLAIN,
        graphs=(Graph("0/0", "f", FILE, 12, 5),),
        fusion_groups=(group(0, "triton_a"), group(1, "triton_b"), group(2, "triton_a"), group(3, "triton_a")),
    )
    names = [
        line.split("  ")[0] for line in shown(report).replace("   t", "t").split("\n") if line.startswith("triton")
    ]
    assert names == ["triton_a x3", "triton_b"]


def test_a_narrow_terminal_folds_and_loses_nothing() -> None:
    report = dataclasses.replace(
        PLAIN, graphs=(Graph("0/0", "f", FILE, 12, 5),), fusion_groups=(group(0, "triton_poi_fused_add_0"),)
    )
    lines = shown(report, width=50).split("\n")
    assert max(map(len, lines)) <= 50
    head = next(number for number, line in enumerate(lines) if line.split()[:1] == ["kernel"])
    width = lines[head].index("kind")
    assert "".join(line[:width].strip() for line in lines[head + 2 :]) == "triton_poi_fused_add_0"


def test_kernel_source_with_model_lines_in_the_margin_and_settings_left_out() -> None:
    source = "import triton\n\n@settings(\n    {}\n)\n@triton.jit\ndef k(a):\n    tl.store(a)\n"
    report = dataclasses.replace(
        PLAIN,
        kernels=(
            kernel(
                "k",
                source=source,
                line_map=(LineMapping(8, FILE, 14),),
                bytes_read=2048,
                bytes_written=10,
                predicted=Predicted(1.5, "memory", "roofline", 1.0, 2.0),
                note="The card chooses.",
            ),
            kernel("same", source=source),
        ),
    )
    assert shown(report, Part.KERNELS) == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  compiled

          k
          triton, graph 0/0; line 14; reads 2 KiB, writes 10 B; predicted 1.50 µs (1.00 µs to 2.00 µs),
          memory-bound (model: roofline)
          The card chooses.
               | ... 5 lines of imports and settings (--show all)
               | @triton.jit
               | def k(a):
            14 |     tl.store(a)
        """
    )
    assert "import triton" in shown(report, Part.KERNELS, Part.ALL)


def test_a_long_kernel_is_cut_and_a_long_line_is_not() -> None:
    source = "\n".join(["x" * 200, *(f"line {number}" for number in range(100))])
    report = dataclasses.replace(PLAIN, kernels=(kernel("k", source=source),))
    cut = shown(report, Part.KERNELS)
    assert "x" * 200 in cut
    assert "... 41 more lines (--show all)" in cut and "line 99" not in cut
    assert "line 99" in shown(report, Part.ALL)


def test_guards_show_what_was_expected_and_what_came() -> None:
    guard = GuardFailure("x", "size", "4", "5", "size mismatch at index 0", "size mismatch", FILE, 4)
    report = dataclasses.replace(PLAIN, recompiles=(Recompile(FILE, 12, "forward", "0/1", 1, (guard,)),))
    assert "expected 4" not in shown(report)
    assert "\n".join(shown(report, Part.GUARDS).split("\n")[2:]) == (
        "  recompile 0/1 of forward (model.py:12), input set 2\n"
        "    x size: expected 4, actual 5 (guard made at model.py:4)\n"
        "      size mismatch at index 0"
    )


def test_a_failure_is_said_once() -> None:
    message = "The process was killed."
    finding = Finding("worker-crash", Severity.ERROR, FILE, 4, 0, 4, 0, message, Rung.ASSEMBLE)
    report = dataclasses.replace(PLAIN, status=Status.FAILED, message=message, findings=(finding,))
    assert shown(report).count(message) == 1
    assert shown(dataclasses.replace(report, findings=())).count(message) == 1


def test_markup_in_user_text_is_text() -> None:
    assert "[red]x[/red]" in shown(dataclasses.replace(PLAIN, message="[red]x[/red]"))


def test_a_benchmark_without_a_clear_winner() -> None:
    result = Benchmark(where="this CPU", method="", speedup=1.02, speedup_low=0.98, speedup_high=1.05)
    assert words.benchmark(result) == "compiled about as fast as eager on this CPU (0.98 to 1.05 times as fast)"


def test_a_benchmark() -> None:
    report = dataclasses.replace(
        PLAIN,
        device="cpu",
        benchmark=Benchmark(
            where="this CPU",
            method="interleaved calls",
            eager=Timing(20.0, 0.5, 100),
            compiled=Timing(10.0, 0.25, 200),
            speedup=2.0,
            speedup_low=1.9,
            speedup_high=2.1,
            compile_ms=1500.0,
            calls_to_pay_off=150000,
            graphs=1,
            graph_breaks=0,
            numerics=Numerics(Agreement.CLOSE, 1e-6, 1e-7, 2e-7, 1e-7),
        ),
    )
    assert shown(report) == expected(
        """
        Model.forward  model.py:12  CPU  compiled

          compiled 2.00x faster than eager on this CPU: 10.0 µs against 20.0 µs
            eager:    20.0 µs a call (spread 0.50 µs, 100 runs)
            compiled: 10.0 µs a call (spread 0.25 µs, 200 runs)
            speed-up: 2.00x (middle half of the rounds: 1.90 to 2.10)
            first call of the compiled program: 1.50 s; pays off after 150000 calls
            compiled into 1 graph, 0 breaks; compiled code was seen to run
            results: apart from eager by rounding only; largest difference 1e-06 (relative 1e-07); against
            float64: eager 2e-07, compiled 1e-07 (relative)
            measured: interleaved calls
        """
    )


def test_a_refused_benchmark_says_why_and_gives_no_figure() -> None:
    refused = Benchmark("this CPU", "not measured", refused="Nothing was compiled.")
    report = dataclasses.replace(PLAIN, status=Status.NOT_RUN, message="Nothing was compiled.", benchmark=refused)
    assert shown(report).count("Nothing was compiled.") == 1
    assert "not measured" not in shown(report)


def test_what_happens_at_several_places_is_said_once() -> None:
    finding = Finding("recompile", Severity.INFORMATION, FILE, 4, 0, 4, 0, "Recompiled.", Rung.CAPTURE, function="f")
    again = (dataclasses.replace(finding, line=line, function=None) for line in (20, 61))
    worse = dataclasses.replace(finding, severity=Severity.ERROR)
    assert shown(dataclasses.replace(PLAIN, findings=(finding, *again, worse))) == expected(
        """
        Model.forward  model.py:12  H200 (simulated)  compiled

          info recompile  model.py:4:1 in f
             4 | def f(x):
               | ^^^^^^^^^
            Recompiled.
            the same at lines 20, 61

          error recompile  model.py:4:1 in f
             4 | def f(x):
               | ^^^^^^^^^
            Recompiled.
        """
    )


def test_hints_are_given_once_and_general_remarks_where_there_is_nothing_else() -> None:
    general = "Please report an issue to PyTorch."
    one = Finding("graph-break", Severity.WARNING, FILE, 20, 0, 20, 0, "a", Rung.CAPTURE, hints=("Do b.", general))
    two = dataclasses.replace(one, message="b")
    alone = dataclasses.replace(one, message="c", hints=(general,))
    assert shown(dataclasses.replace(PLAIN, findings=(one, two))).count("hint: ") == 1
    assert shown(dataclasses.replace(PLAIN, findings=(one, alone))).count(general) == 1
    assert general in shown(dataclasses.replace(PLAIN, findings=(one,)), Part.ALL)


def test_the_calls_that_led_to_a_finding_are_one_line() -> None:
    related = (
        *(Related(FILE, line, "called from here") for line in (61, 18)),
        Related("/work/lib.py", 2, "raised here"),
    )
    finding = Finding("graph-break", Severity.WARNING, "/x.py", 1, 0, 1, 0, "a", Rung.CAPTURE, related=related)
    lines = [line.strip() for line in shown(dataclasses.replace(PLAIN, findings=(finding,))).split("\n")]
    assert lines[-2:] == ["called from model.py:61, from model.py:18", "raised here: lib.py:2"]


def test_notes_say_what_limits_the_report() -> None:
    assert "  note: Choices were not timed." in shown(dataclasses.replace(PLAIN, notes=("Choices were not timed.",)))


def summed_up(*targets: TargetReport, parts: frozenset[Part] = frozenset()) -> str | None:
    report = Report("0.1", "2.13.0", None, "3.11", targets)
    return advice.next_step(report, View(parts, Path("/work"), lambda file, line: ""))


def test_the_last_line_says_what_to_do_next() -> None:
    hint = Finding("library-kernel", Severity.HINT, FILE, 2, 0, 2, 0, "a", Rung.LOWER)
    info = dataclasses.replace(hint, code="recompile", severity=Severity.INFORMATION, line=4)
    broken = dataclasses.replace(hint, code="graph-break", severity=Severity.WARNING, line=20)
    model = dataclasses.replace(PLAIN, findings=(hint, info, broken), kernels=(kernel("k", source="x"),))
    watch = "`inductoscope watch model.py` tells what each edit changes"
    show = "--show kernels prints the generated code"
    assert summed_up(model) == f"next: look at graph-break model.py:20 first, of 3 findings; {show}; {watch}"
    assert summed_up(model, parts=frozenset({Part.ALL})) == (
        f"next: look at graph-break model.py:20 first, of 3 findings; {watch}"
    )
    assert summed_up(dataclasses.replace(PLAIN, findings=(info,))) == f"next: look at recompile model.py:4; {watch}"
    assert summed_up(dataclasses.replace(PLAIN, findings=(hint,))) == f"next: {watch}"
    assert summed_up(dataclasses.replace(PLAIN, status=Status.FAILED, findings=(broken,))) is None
