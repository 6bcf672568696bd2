"""Programs for the shape probe, with what is true of each dimension of their inputs.

`make` builds the inputs; its keywords are the sizes that can be chosen, with those of the run as defaults.  `answers`
says for a dimension which keyword changes it, what another size does, and on which marked line (`# <name>`, or the
first one for "") that is decided.  `third` is a size that each of them can have, other than the one of the run and the
ones that are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from inductoscope.protocol.report import ProbeOutcome

DYNAMIC, REUSED, RECOMPILES = ProbeOutcome.DYNAMIC, ProbeOutcome.REUSED, ProbeOutcome.RECOMPILES
PINNED, FAILS = ProbeOutcome.PINNED, ProbeOutcome.FAILS

Answer = tuple[str, ProbeOutcome, "str | None"]


@dataclass(frozen=True)
class Programmed:
    program: Callable[..., Any]
    make: Callable[..., tuple[Any, ...]]
    answers: Mapping[str, Answer]
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compile: Mapping[str, Any] = field(default_factory=dict)
    third: int = 20


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(16, 16)
        self.register_buffer("past", torch.tril(torch.ones(64, 64)))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.project(x)  # <project>
        length = x.shape[1]
        scores = y @ y.transpose(1, 2)
        scores = scores.masked_fill(self.past[:length, :length] == 0, 0.0)  # <table>
        return scores + mask[:, None, :]


def from_a_dictionary(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    table = torch.arange(100.0).reshape(50, 2)
    return table[batch["ids"]] * batch["mask"].unsqueeze(-1)


def loops_over_rows(x: torch.Tensor) -> torch.Tensor:
    total = x[0] * 0
    for row in range(x.shape[0]):  # <rows>
        total = total + x[row] * row
    return total


def small_or_large(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 10:  # <large>
        return x * 2
    return x.sum(0)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def prints_between(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.relu()
    print("a graph break")
    return y + mask


class RemembersFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.first is None:
            self.first = x.mean(0)
        return x - self.first


def refuses_others(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] != 4:
        raise ValueError("four rows are wanted")  # <refused>
    return x + 1


def next_token_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits[:-1], labels)  # <loss>


def uses_one(x: torch.Tensor, spare: torch.Tensor) -> torch.Tensor:
    return x + 1


def adds_in_place(xs: list[torch.Tensor]) -> torch.Tensor:
    xs[0].add_(1)
    return xs[0] + xs[1]


def in_windows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, 4, x.shape[1]).sum(1)  # <windows>


def in_patches(x: torch.Tensor) -> torch.Tensor:
    rows = x.shape[0] // 4  # a single row of patches is compiled apart
    return x.reshape(rows, 4, -1).sum(1)  # <patches>


def any_number(*args: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return sum(args) * scale


PROGRAMS = {
    "attention": Programmed(
        Attention(),
        lambda b=4, t=8, f=16: (torch.randn(b, t, f), torch.randn(b, t)),
        {"x 0": ("b", DYNAMIC, None), "x 1": ("t", DYNAMIC, "table"), "x 2": ("f", FAILS, "project")},
        together={"x 0": ("mask.shape[0]",), "x 1": ("mask.shape[1]",)},
    ),
    "dictionary": Programmed(
        from_a_dictionary,
        lambda b=6, t=8: ({"ids": torch.randint(50, (b, t)), "mask": torch.ones(b, t)},),
        {"batch['ids'] 0": ("b", DYNAMIC, None), "batch['ids'] 1": ("t", DYNAMIC, None)},
        together={"batch['ids'] 0": ("batch['mask'].shape[0]",), "batch['ids'] 1": ("batch['mask'].shape[1]",)},
    ),
    "rows": Programmed(
        loops_over_rows,
        lambda r=6, c=5: (torch.randn(r, c),),
        {"x 0": ("r", PINNED, "rows"), "x 1": ("c", DYNAMIC, None)},
    ),
    "branch": Programmed(
        small_or_large,
        lambda r=8, c=6: (torch.randn(r, c),),
        {"x 0": ("r", DYNAMIC, "large"), "x 1": ("c", DYNAMIC, None)},
        third=9,
    ),
    "all dynamic": Programmed(
        scaled, lambda r=8: (torch.randn(r, 3),), {"x 0": ("r", REUSED, None)}, compile={"dynamic": True}
    ),
    "none dynamic": Programmed(
        scaled, lambda r=8: (torch.randn(r, 3),), {"x 0": ("r", RECOMPILES, None)}, compile={"dynamic": False}
    ),
    "batch of one": Programmed(
        Attention(),
        lambda b=1, t=8: (torch.randn(b, t, 16), torch.randn(b, t)),
        {"x 0": ("b", DYNAMIC, None)},
        together={"x 0": ("mask.shape[0]",)},
    ),
    "graph break": Programmed(
        prints_between,
        lambda r=8, c=6: (torch.randn(r, c), torch.randn(r, c)),
        {"x 0": ("r", DYNAMIC, None), "x 1": ("c", DYNAMIC, None)},
        together={"x 0": ("mask.shape[0]",), "x 1": ("mask.shape[1]",)},
    ),
    "state of the first call": Programmed(
        RemembersFirst(), lambda r=8: (torch.randn(r, 3),), {"x 0": ("r", DYNAMIC, None)}
    ),
    "refused": Programmed(refuses_others, lambda r=4: (torch.randn(r, 3),), {"x 0": ("r", FAILS, "refused")}),
    "one less": Programmed(
        next_token_loss,
        lambda t=9: (torch.randn(t, 5), torch.randint(5, (t - 1,))),
        {"logits 0": ("t", DYNAMIC, None)},
        together={"logits 0": ("labels.shape[0]",)},
    ),
    "unused": Programmed(uses_one, lambda r=4: (torch.randn(3), torch.randn(r)), {"spare 0": ("r", REUSED, None)}),
    "list": Programmed(
        adds_in_place,
        lambda r=4: ([torch.randn(r), torch.randn(r)],),
        {"xs[0] 0": ("r", DYNAMIC, None)},
        together={"xs[0] 0": ("xs[1].shape[0]",)},
    ),
    "windows": Programmed(
        in_windows,
        lambda r=12, c=3: (torch.randn(r, c),),
        {"x 0": ("r", DYNAMIC, "windows"), "x 1": ("c", DYNAMIC, None)},
    ),
    "patches": Programmed(
        in_patches,
        lambda r=16, c=3: (torch.randn(r, c),),
        {"x 0": ("r", DYNAMIC, "patches"), "x 1": ("c", DYNAMIC, None)},
    ),
    "library module": Programmed(
        nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
        lambda r=6, c=8: (torch.randn(r, c),),
        {"input 0": ("r", DYNAMIC, None), "input 1": ("c", FAILS, "")},
    ),
}
