"""Programs whose graphs Inductor compiles; what they return says whether the program went on with right values."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


def program_block_in_float32(device):
    model = Block().to(device)
    x = torch.linspace(-1, 1, 2 * 8 * 64).view(2, 8, 64).to(device)
    y = torch.compile(model)(x)
    y.pow(2).mean().backward()
    return [y.sum().item(), model.qkv.weight.grad.abs().sum().item(), y.device.type == device]


def program_branch_between_graphs(device):
    @torch.compile
    def f(x):
        y = x * 2
        if y.mean().item() > 0:  # look
            return y.sin() + 1
        return y.cos() - 1

    return [f(torch.full((64,), value, device=device)).sum().item() for value in (1.0, -1.0)]


def program_look_inside_a_graph(device):
    def f(x):
        n = x.sum().item()  # captured look
        return x * n

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        return torch.compile(f, fullgraph=True)(torch.ones(4, device=device)).tolist()


def program_control_flow_in_the_graph(device):
    def f(x):
        x = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))  # predicate
        return x * 2

    compiled = torch.compile(f, fullgraph=True)
    return [compiled(sign * torch.ones(3, device=device)).tolist() for sign in (1, -1)]


def program_cpu_graph_beside_it(device):
    f = torch.compile(lambda x: (x * 2).relu().sum())
    return [f(torch.arange(4.0)).item(), f(torch.arange(4.0, device=device)).item()]


def program_numbers_made_inside(device):
    def clipped(x):
        limit = torch.tensor(0.5, device=x.device)
        return torch.minimum(x, limit) * torch.tensor(3, device=x.device).add_(1)

    return torch.compile(clipped)(torch.linspace(-1, 1, 7).to(device)).tolist()


def program_unaligned_matmul(device):
    f = torch.compile(lambda a, b: (a @ b).relu())  # unaligned
    a, b = (torch.ones(511, 511, device=device, dtype=torch.bfloat16) for _ in range(2))
    return list(f(a, b).shape)


def program_autotuned_matmul(device):
    f = torch.compile(lambda a, b: (a @ b).relu(), mode="max-autotune-no-cudagraphs")
    a, b = (torch.ones(256, 256, device=device, dtype=torch.float16) for _ in range(2))
    return list(f(a, b).shape)


def program_recorded_as_a_cuda_graph(device):
    f = torch.compile(lambda x: x.softmax(-1), mode="reduce-overhead")
    return f(torch.ones(2, 4, device=device)).tolist()


def program_state_is_shared_with_the_model(device):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen += x.sum()
            return x * self.seen

    model = Counter().to(device)
    compiled = torch.compile(model)
    compiled(torch.ones(2, device=device))
    compiled(torch.ones(2, device=device))
    return model.seen.item()


def program_optimiser_step_compiled(device):
    parameter = nn.Parameter(torch.ones(8, device=device))
    parameter.grad = torch.full((8,), 0.5, device=device)
    optimiser = torch.optim.AdamW([parameter], lr=0.1)
    optimiser.step()
    torch.compile(optimiser.step)()
    return parameter.tolist()


def program_what_is_patched_is_no_frame_to_compile(device):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(4, 8)
            self.weight = nn.Parameter(torch.ones(8))

        def forward(self, x):
            y, _ = self.layer(x)
            loss = (y * self.weight).sum()
            loss.backward()
            return self.weight.grad.abs().sum() > 0

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = torch.compile(Reader().to(device))
    worked = bool(model(torch.ones(3, 2, 4, device=device)))
    counters = torch._dynamo.utils.counters
    return [worked, len(counters["unimplemented"]), counters["stats"]["unique_graphs"]]
