"""Which line owns a kernel, what a hand-written one is called, and how often it was launched."""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.compiler import kernel_owners
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Place

SOURCE = "@triton.jit\ndef scale_kernel(src, dst):\n    pass\n"
TARGET = Target("/model.py", "net", 7, TargetKind.OBJECT, "net")
CALL = Place("/model.py", 22, "scale")
ELSEWHERE = Place("/model.py", 30, "outside")
LIBRARY = Place("/site-packages/torch/nn/modules/linear.py", 130, "Linear.forward")


@dataclass(frozen=True)
class Launched:
    name: str
    place: Place | None
    count: int


def kernel(*, lines: tuple[Place, ...] = (), library: tuple[Place, ...] = (), own: bool = False) -> Kernel:
    return Kernel(
        name="scale_kernel_0",
        language=KernelLanguage.TRITON,
        phase=Phase.FORWARD,
        graph="0/0",
        source=SOURCE,
        lines=lines,
        library_lines=library,
        user_written=own,
    )


def test_library_code_belongs_to_the_target_that_brought_it_in() -> None:
    owned = kernel_owners.owned(kernel(library=(LIBRARY,)), TARGET)
    assert owned.lines == (Place("/model.py", 7, "net"),)
    assert owned.library_lines == (LIBRARY,)


def test_a_kernel_with_lines_or_of_unknown_origin_is_left_alone() -> None:
    for one in (kernel(lines=(CALL,), library=(LIBRARY,)), kernel()):
        assert kernel_owners.owned(one, TARGET) is one


def test_a_hand_written_kernel_has_its_own_name_and_the_launches_of_its_own_line() -> None:
    launches = [Launched("scale_kernel", CALL, 3), Launched("scale_kernel", ELSEWHERE, 5), Launched("other", CALL, 7)]
    named = kernel_owners.named(kernel(lines=(CALL,), own=True), launches)
    assert named.note == "This is scale_kernel of the program, launched 3 times in these calls."


def test_without_a_simulated_device_launches_are_not_known() -> None:
    assert kernel_owners.named(kernel(lines=(CALL,), own=True), ()).note == "This is scale_kernel of the program."
    generated = kernel(lines=(CALL,))
    assert kernel_owners.named(generated, [Launched("scale_kernel", CALL, 1)]) is generated


def test_launches_outside_of_graphs_are_told_with_their_lines() -> None:
    launches = [Launched("scale_kernel", CALL, 1), Launched("scale_kernel", ELSEWHERE, 1), Launched("other", None, 2)]
    first, second = kernel_owners.outside_of_graphs([kernel(lines=(CALL,), own=True)], launches)
    assert "scale_kernel is launched once" in first
    assert "line 30" in first
    assert "other is launched 2 times" in second
