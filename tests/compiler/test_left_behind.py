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
