"""What lines make.  `# makes: [NAME=]TEXT [strides]` for each result that a line has, `|` between several."""

import torch
from torch import nn


def doubled(a):
    b = a * 2  # makes: b=f32[4, 8] | b=f32[s77=5, 8]
    return b  # noqa: RET504  (the assignment is what is looked at)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)
        self.inner = nn.Module()

    def forward(self, x, y):
        h = self.linear(x)  # makes: h=f32[4, 16] | h=f32[s77=5, 16]
        t = h.t()  # makes: t=f32[16, 4] [1, 16] | t=f32[16, s77=5] [1, 16]
        a, _ = h.split(8, 1)  # makes: a=f32[4, 8] [16, 1] | a=f32[s77=5, 8] [16, 1]
        parts = torch.split(x, 4, dim=1)  # makes: parts=(f32[4, 4], f32[4, 4]) | parts=(f32[s77=5, 4], f32[s77=5, 4])
        z = doubled(torch.relu(x))  # makes: z=f32[4, 8] | z=f32[s77=5, 8]
        for _ in range(2):
            z = torch.cat([z, z])  # makes: z=f32[8, 8] | z=f32[16, 8] | z=f32[2*s77=10, 8] | z=f32[4*s77=20, 8]
        w = (  # makes: w=i32[3]
            y  # makes: i32[3]
            + 1
        )
        w += 2  # makes: w=i32[3]
        rows = x.shape[0] * 2  # makes: rows=int 2*s77=10
        self.kept = x + 1  # makes: self.kept=f32[4, 8] | self.kept=f32[s77=5, 8]
        self.inner.rows = x.size(0)  # makes: self.inner.rows=int s77=5
        self.width = x.shape[1]
        print("splits the graph")
        q = (u := x.double()).sum()  # makes: u=f64[4, 8] | q=f64[] | u=f64[s77=5, 8]
        count = 3
        return h.sum(), z, w, t, q, a, u, parts, count, rows  # makes: f32[]


def get_input_sets():
    indices = torch.ones(3, dtype=torch.int32)
    return [(torch.randn(4, 8), indices), (torch.randn(5, 8), indices)]
