import torch
from torch import nn

from inductoscope.compiler import left_behind


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(2))
        self.weight = nn.Parameter(torch.ones(2))
        self.angles = torch.ones(3)
        self.scale = torch.tensor(2.0)
        self.elsewhere = torch.ones(3, device="meta")
        self.late: torch.Tensor | None = None


def test_only_plain_tensors_with_dimensions_on_the_cpu_are_left_behind() -> None:
    text = left_behind.note([Rotary()])
    assert text is not None
    assert text.startswith("`angles` is a tensor but no parameter or buffer of the model")
    assert left_behind.note([nn.Linear(2, 2)]) is None
    assert left_behind.note([]) is None


def test_many_are_counted_by_their_path_in_the_model() -> None:
    text = left_behind.note([nn.Sequential(*(Rotary() for _ in range(5)))])
    assert text is not None
    assert text.startswith("`0.angles`, `1.angles`, `2.angles` and 2 more are tensors")


TABLE = torch.ones(3)
WEIGHTS = {"w": torch.ones(2), "scale": 2}
SCALE = torch.tensor(2.0)
LINEAR = nn.Linear(2, 2)


def looks_up(x: torch.Tensor) -> torch.Tensor:
    return x * TABLE * SCALE


def calls_another(x: torch.Tensor) -> torch.Tensor:
    inside = lambda y: looks_up(LINEAR(y))  # noqa: E731
    return inside(x) @ WEIGHTS["w"] if x.dim() else calls_another(x)


def test_tensors_of_the_file_that_a_function_reaches_are_named() -> None:
    text = left_behind.note_of_cpu_globals([calls_another])
    assert text is not None
    assert text.startswith("`TABLE`, `WEIGHTS` stay on the CPU, where the file makes them")
    only = left_behind.note_of_cpu_globals([looks_up])
    assert only is not None
    assert only.startswith("`TABLE` stays on the CPU")
    assert left_behind.note_of_cpu_globals([test_many_are_counted_by_their_path_in_the_model]) is None


def test_a_name_that_is_not_set_yet_is_no_tensor() -> None:
    def uses_later(x: torch.Tensor) -> torch.Tensor:
        return x + later + here

    here = torch.ones(2)
    text = left_behind.note_of_cpu_globals([uses_later])
    later = torch.ones(2)
    assert text is not None
    assert text.startswith("`here` stays")
    assert torch.equal(uses_later(later), torch.full((2,), 3.0))
