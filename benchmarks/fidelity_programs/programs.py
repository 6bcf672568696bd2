"""Whole programs with graph breaks, control flow, hand-written kernels and values that the host looks at."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fidelity_programs.kit import BF16, Prepared, inference, integers, large, on_gpu, randn, training, whole


def branch_on_a_sum() -> Prepared:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x) * 2
        if y.sum() > 0:
            y = y + 1
        return torch.softmax(y, -1)

    return whole(lambda x: [step(x).sum().item()], randn(64, 512))


def until_converged() -> Prepared:
    step = torch.compile(lambda a, x: x + 0.5 * (1.0 - a @ x))

    def run(a: torch.Tensor) -> list[float]:
        x, rounds = torch.zeros(32, device="cuda"), 0
        while (a @ x - 1.0).abs().max() > 1e-3 and rounds < 100:
            x, rounds = step(a, x), rounds + 1
        return [rounds, x.sum().item()]

    return whole(run, torch.eye(32).cuda())


def item_as_scale() -> Prepared:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return x.tanh() / x.abs().max().item()

    return whole(lambda x: [step(x).sum().item()], randn(128, 128))


def nonzero_rows() -> Prepared:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return x[(x.sum(-1) > 0).nonzero().squeeze(-1)].exp().mean()

    return whole(lambda x: [step(x).item()], randn(256, 16))


def suppress_boxes() -> Prepared:
    overlap = torch.compile(
        lambda a, b: (torch.minimum(a[:, None], b[None]) / torch.maximum(a[:, None], b[None])).clamp(0, 1)
    )

    def run(sizes: torch.Tensor) -> list[float]:
        kept: list[float] = []
        table = overlap(sizes, sizes)
        for at in sizes.argsort(descending=True).tolist():
            if all(table[at, int(other)] < 0.9 for other in kept):
                kept.append(at)
        return kept[:8]

    return whole(run, randn(24).abs() + 0.1)


def greedy_decoding() -> Prepared:
    table = on_gpu(nn.Embedding(128, 64))
    head = on_gpu(nn.Linear(64, 128, bias=False))
    head.weight = table.weight
    step = torch.compile(lambda i: head(table(i).tanh()))

    def run(start: torch.Tensor) -> list[float]:
        token, seen = start, []
        with torch.no_grad():
            for _ in range(4):
                token = step(token).argmax(-1)
                seen.append(float(token[0].item()))
        return seen

    return whole(run, integers(128, 2))


def print_between() -> Prepared:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x.softmax(-1)
        print(f"{y.shape}")
        return y.log().sum(-1)

    return whole(lambda x: [step(x).mean().item()], randn(64, 64))


def through_numpy() -> Prepared:
    def run(x: torch.Tensor) -> list[float]:
        y = torch.compile(lambda x: x.square().sum(0))(x).cpu().numpy()
        z = torch.compile(lambda x: x.sqrt() * 2)(torch.from_numpy(np.sort(y)).cuda())
        return [z[0].item(), z[-1].item()]

    return whole(run, randn(64, 32))


def only_on_cuda() -> Prepared:
    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return x.exp() if x.is_cuda else x.log()

    return whole(lambda x: [step(x).sum().item()], randn(32, 32))


def cond_operator() -> Prepared:
    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x,))

    return inference(run, randn(64, 64))


def while_operator() -> Prepared:
    from torch._higher_order_ops.while_loop import while_loop

    def run(x: torch.Tensor) -> torch.Tensor:
        count = torch.zeros((), dtype=torch.int64, device=x.device)
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.tanh() * 2), (count, x))[1]

    return inference(run, randn(64, 64))


def hand_written_kernel() -> Prepared:
    import triton
    import triton.language as tl

    @triton.jit
    def add_twice(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(out + at, tl.load(x + at, inside) + 2 * tl.load(y + at, inside), inside)

    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out, n = torch.empty_like(x), x.numel()
        add_twice[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x.relu(), y, out, n, BLOCK=1024)
        return out.exp() + 1

    return inference(run, large(1 << 18), large(1 << 18))


def custom_operator() -> Prepared:
    @torch.library.custom_op("fidelity::halve", mutates_args=())
    def halve(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    halve.register_fake(lambda x: torch.empty_like(x))
    return inference(lambda x: halve(x.relu()).exp() + 1, randn(128, 128))


def vmapped() -> Prepared:
    return inference(torch.vmap(lambda x, w: (x @ w).relu().sum(-1)), large(16, 32, 64), large(16, 64, 8))


def per_sample_gradient() -> Prepared:
    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (x @ w).tanh().sum()

    return inference(torch.vmap(torch.func.grad(loss), in_dims=(None, 0)), large(64, 8), large(32, 64))


def lstm_cell_loop() -> Prepared:
    cell = on_gpu(nn.LSTMCell(64, 128))

    def run(x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[1], 128, device=x.device)
        for step in x.unbind(0):
            h, c = cell(step, (h, c))
        return h

    return inference(run, large(6, 32, 64))


def gru_by_hand_trained() -> Prepared:
    cell = on_gpu(nn.GRUCell(32, 64))

    def run(x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(x.shape[1], 64, device=x.device)
        for step in x.unbind(0):
            h = cell(step, h)
        return h

    return training(run, large(4, 16, 32))


def training_loop() -> Prepared:
    model = on_gpu(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    step = torch.compile(lambda x, y: F.mse_loss(model(x), y))

    def run(x: torch.Tensor, y: torch.Tensor) -> list[float]:
        losses = []
        for _ in range(3):
            optimiser.zero_grad()
            loss = step(x, y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    return whole(run, randn(128, 64), randn(128, 64))


def dtype_after_device() -> Prepared:
    model = nn.Linear(64, 64).cuda().bfloat16()
    step = torch.compile(lambda x: model(x).relu())

    def run(x: torch.Tensor) -> list[float]:
        with torch.no_grad():
            return [step(x).float().sum().item(), model.weight.float().sum().item()]

    return whole(run, randn(32, 64, dtype=BF16))


def weights_loaded_later() -> Prepared:
    model = on_gpu(nn.Linear(32, 32))
    step = torch.compile(lambda x: model(x).softmax(-1))

    def run(x: torch.Tensor) -> list[float]:
        with torch.no_grad():
            before = step(x)[0, 0].item()
            model.load_state_dict({name: value * 2 for name, value in model.state_dict().items()})
            return [before, step(x)[0, 0].item()]

    return whole(run, randn(16, 32))


def diffusion_schedule() -> Prepared:
    betas = torch.linspace(1e-4, 0.02, 100).cuda()
    kept = (1 - betas).cumprod(0)
    step = torch.compile(lambda x, noise, t: kept[t].sqrt()[:, None] * x + (1 - kept[t]).sqrt()[:, None] * noise)
    return whole(lambda x, noise, t: [step(x, noise, t).sum().item()], randn(16, 64), randn(16, 64), integers(100, 16))


def beam_scores() -> Prepared:
    @torch.compile
    def step(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scores.log_softmax(-1).flatten(1).topk(4, -1)

    def run(scores: torch.Tensor) -> list[float]:
        best, where = step(scores)
        return [best[0, 0].item(), float(where[0, 0].item())]

    return whole(run, randn(2, 4, 50))


def scaled_by_python_number() -> Prepared:
    return inference(lambda x, n: x * math.sqrt(n) + n, large(512, 512), 7)
