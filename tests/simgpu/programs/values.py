"""Programs whose course depends on values of device tensors, in every way in which a program can look at one."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def ramp(device, *shape, dtype=torch.float32):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32).view(shape) / count - 0.4).to(device, dtype)


def program_item_and_bool(device):
    x = ramp(device, 10)
    return [x.sum().item(), bool(x.mean() > 0), int(x.argmax()), float(x[3]), (x > 0).any().item()]


def program_tolist_and_numpy(device):
    x = ramp(device, 2, 3)
    return [x.tolist(), x.cpu().numpy().tolist(), x.sum(0).tolist(), x.to("cpu", torch.float64).tolist()]


def program_text(device):
    x = ramp(device, 3)
    text = repr(x).replace(", device='cuda:0'", "")
    return [f"{x.sum():.3f}", f"{x[0]:>8.2f}|", text, str(x[1]).replace(", device='cuda:0'", ""), f"{x.sum()}"[:5]]


def program_data_dependent_sizes(device):
    x = ramp(device, 12)
    mask = x > 0
    return [
        x[mask].tolist(),
        mask.nonzero().tolist(),
        torch.masked_select(x, ~mask).tolist(),
        [t.tolist() for t in torch.where(mask)],
        torch.unique((x * 3).round()).tolist(),
        torch.bincount(mask.long()).tolist(),
        torch.repeat_interleave(x[:3], mask[-3:].long() + 1).tolist(),
        x.topk(3)[0].tolist(),
    ]


def program_comparisons(device):
    x = ramp(device, 5)
    return [
        torch.equal(x, x + 0),
        torch.allclose(x, x + 1e-9),
        3 in torch.arange(5, device=device),
        (x == x + 0).all().item(),
    ]


def program_written_views(device):
    x = torch.zeros(4, 4, device=device)
    x[1] = 1
    x[:, 2] += 5
    x[x > 5] = -1
    x.t()[0].fill_(7)
    x.diagonal().mul_(2)
    x.index_put_((torch.tensor([3], device=device), torch.tensor([3], device=device)), torch.tensor(9.0, device=device))
    x.scatter_(1, torch.zeros(4, 1, dtype=torch.long, device=device), 0.5)
    return x.tolist()


def program_read_before_it_is_overwritten(device):
    x = ramp(device, 4)
    before = x * 10
    view = x[1:]
    x.add_(1)
    after = view * 10
    x.zero_()
    return [after.tolist(), before.tolist(), view.tolist()]


def program_out_arguments(device):
    x, out = ramp(device, 4), torch.empty(0, device=device)
    torch.mul(x, 2, out=out)
    torch.cumsum(out, 0, out=out)
    return out.tolist()


def program_complex_and_conjugate(device):
    z = torch.complex(ramp(device, 4), ramp(device, 4).flip(0))
    w = z.conj()
    return [torch.view_as_real(w.resolve_conj()).tolist(), w.imag.tolist(), (z * w).real.tolist(), z.abs().sum().item()]


def program_host_copies(device):
    host = torch.zeros(3)
    host.copy_(ramp(device, 3))
    back = torch.ones(3).to(device)
    back.copy_(host)
    return [host.tolist(), back.tolist()]


def program_host_buffer_reused(device):
    buffer, seen = torch.zeros(3), []
    for i in range(3):
        buffer.fill_(i)
        seen.append(buffer.to(device, copy=True))
    return [x.tolist() for x in seen]


def program_scalar_of_the_host(device):
    return (ramp(device, 3) * torch.tensor(2.0) + torch.tensor(1.0)).tolist()


def program_loop_until_small(device):
    x, rounds = torch.full((100,), 5.0, device=device), 0
    while (x * x - 2).abs().max() > 1e-4:
        x, rounds = (x + 2 / x) / 2, rounds + 1
    return [rounds, x[0].item()]


def program_sorting_and_scans(device):
    x = ramp(device, 3, 4).flip(1)
    return [x.sort(1)[1].tolist(), x.cumsum(0).tolist(), x.logsumexp(1).tolist(), x.median().item(), x.std().item()]


def program_foreach(device):
    xs = [ramp(device, 3), ramp(device, 2, 2)]
    torch._foreach_mul_(xs, 2.0)
    norms = torch._foreach_norm(xs)
    torch._foreach_add_(xs, [torch.ones_like(x) for x in xs])
    return [[x.tolist() for x in xs], [n.item() for n in norms]]


def program_inference_mode(device):
    with torch.inference_mode():
        x = torch.arange(3.0).to(device)
        x.add_(1)
        return [x.tolist(), (x * 2).sum().item()]


def train(model, optimiser, device, inputs, steps=3, after=lambda: None):
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = model(inputs.to(device)).float().pow(2).mean()
        loss.backward()
        after()
        optimiser.step()
        losses.append(loss.item())
    return losses


class Attention(nn.Module):
    def __init__(self, mask=False, grouped=False):
        super().__init__()
        self.norm, self.q, self.kv = nn.LayerNorm(32), nn.Linear(32, 32), nn.Linear(32, 32 if grouped else 64)
        self.mask, self.grouped = mask, grouped

    def forward(self, x):
        x = self.norm(x)
        heads = 2 if self.grouped else 4
        q = self.q(x).view(*x.shape[:2], 4, 8).transpose(1, 2)
        k, v = (t.view(*x.shape[:2], heads, 8).transpose(1, 2) for t in self.kv(x).chunk(2, -1))
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device).tril() * 2 - 1 if self.mask else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=not self.mask, enable_gqa=self.grouped)
        return y.transpose(1, 2).reshape(x.shape)


def program_training_with_adamw(device):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    clip = lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # noqa: E731
    return train(model, optimiser, device, ramp("cpu", 6, 8), after=clip)


def program_training_convolutions(device):
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    ).to(device)
    losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), device, ramp("cpu", 2, 3, 8, 8))
    model.eval()
    return [losses, model(ramp(device, 2, 3, 8, 8)).tolist(), model[1].running_var.tolist()]


def program_training_attention(device):
    results = []
    for model in (Attention(), Attention(mask=True), Attention(grouped=True)):
        model.to(device)
        results.append(train(model, torch.optim.SGD(model.parameters(), lr=0.5), device, ramp("cpu", 2, 16, 32)))
    return results


def program_training_recurrent(device):
    class Last(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer, self.head = layer, nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.layer(x)[0][:, -1])

    results = []
    for layer in (nn.LSTM(4, 8, num_layers=2, batch_first=True), nn.GRU(4, 8, batch_first=True), nn.RNN(4, 8)):
        model = Last(layer).to(device)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
        results.append(train(model, optimiser, device, ramp("cpu", 3, 5, 4), steps=2))
    return results


def program_training_embedding(device):
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 3)).to(device)
    tokens = torch.tensor([[1, 2, 3], [8, 1, 1]])
    return train(model, torch.optim.SGD(model.parameters(), lr=0.1), device, tokens)


def program_gradient_scaler(device):
    model = nn.Linear(4, 2).to(device)
    scaler, optimiser = torch.amp.GradScaler(device), torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(ramp(device, 3, 4)).pow(2).sum()
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()
    return [loss.item(), model.weight.tolist()]


def program_second_derivative(device):
    x = ramp(device, 4).requires_grad_()
    (gradient,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()
    return x.grad.tolist()


def program_backward_under_inference_mode_off(device):
    with torch.inference_mode(False):
        x = ramp(device, 4).requires_grad_()
        x.sin().sum().backward()
    return x.grad.tolist()


def program_function_transforms(device):
    f = lambda x: (x * x).sum()  # noqa: E731
    x = ramp(device, 3, 2)
    return [torch.func.grad(f)(x).tolist(), torch.vmap(f)(x).tolist(), torch.func.jacrev(torch.sin)(x[0]).tolist()]


def program_checkpoint(device):
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).to(device)
    x = ramp(device, 2, 4).requires_grad_()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return x.grad.tolist()


def program_random_numbers_obey_the_seed(device):
    torch.manual_seed(5)
    first = torch.rand(4, device=device)
    torch.manual_seed(5)
    second, third = torch.rand(4, device=device), torch.rand(4, device=device)
    return [torch.equal(first, second), torch.equal(second, third), bool(((first >= 0) & (first < 1)).all())]


def program_random_numbers_of_a_generator(device):
    a = torch.Generator(device=device).manual_seed(3)
    b = torch.Generator(device=device).manual_seed(3)
    state = a.get_state()
    x, y = torch.randn(4, device=device, generator=a), torch.randn(4, device=device, generator=b)
    a.set_state(state)
    z = torch.randperm(6, generator=a, device=device)
    return [torch.equal(x, y), isinstance(a, torch.Generator), a.device.type == device, sorted(z.tolist())]


def program_looking_twice_gives_one_value(device):
    x = torch.randn(4, device=device)
    y = x + 1
    return [torch.equal(x, x), torch.allclose(y - 1, x, atol=1e-6), x.tolist() == x.tolist()]


def program_dropout_has_one_mask(device):
    x = torch.ones(1000, device=device, requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    return [torch.equal(x.grad, y.detach()), 300 < (y > 0).sum().item() < 700]


def program_generators_are_known_to_python(device):
    return [isinstance(torch.default_generator, torch.Generator), isinstance(torch.Generator(), torch.Generator)]


def program_higher_order_operators_captured(device):
    def f(x):
        y = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))
        return y * 2

    compiled = torch.compile(f, backend="eager")
    return [compiled(torch.ones(2, device=device)).tolist(), compiled(-torch.ones(2, device=device)).tolist()]


def program_captured_by_dynamo(device):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.0)).to(device)
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    x = ramp(device, 2, 4)
    branch = "high" if compiled(x).sum() > 0.1 else "low"
    return [branch, torch.allclose(model(x), compiled(x)), compiled(x).tolist()]


@torch.library.custom_op("simgputests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("simgputests::incremented", mutates_args=("x",))
def incremented(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x.clone()


doubled.register_autograd(lambda ctx, gradient: gradient * 2)


def program_operators_without_a_shape_function(device):
    x = ramp(device, 4).requires_grad_()
    doubled(x).sum().backward()
    y = ramp(device, 3)
    before, view = y * 10, y[1:]
    after = incremented(y)
    return [x.grad.tolist(), before.tolist(), after.tolist(), view.tolist()]


def program_graph_operators_with_bodies(device):
    from torch._higher_order_ops.map import map as mapped
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop

    def f(x):
        _, sums = scan(lambda carry, row: (carry + row, carry + row), torch.zeros_like(x[0]), x)
        doubled = mapped(lambda row: row * 2, x)
        count = torch.zeros((), dtype=torch.long, device=x.device)
        return sums, doubled, while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (count, x))[1]

    return [y.tolist() for y in torch.compile(f, backend="eager")(ramp(device, 3, 2))]


def program_pinned(device):
    host = torch.arange(3.0)
    if device == "cpu":
        return [host.tolist()] * 2
    empty = torch.empty(3, pin_memory=True).copy_(host)
    return [host.pin_memory().to(device, non_blocking=True).tolist(), empty.to(device).tolist()]


def program_padded_encoder(device):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).to(device).eval()
    mask = torch.tensor([[False, True, False], [False, False, False]], device=device)
    with torch.no_grad():
        return model(ramp(device, 2, 3, 8), src_key_padding_mask=mask)[1].tolist()


def program_temporal_classification(device):
    scores = ramp(device, 10, 2, 5).log_softmax(-1).requires_grad_()
    targets = torch.tensor([[1, 2], [3, 4]], device=device)
    loss = F.ctc_loss(scores, targets, (10, 10), (2, 2))
    loss.backward()
    return [loss.item(), scores.grad.sum().item()]


def program_mixed_devices_are_refused(device):
    if device == "cpu":
        return "Expected all tensors to be on the same device"
    try:
        torch.ones(3, device=device) + torch.ones(3)
    except RuntimeError as error:
        return str(error)[:45]
    return "accepted"


def program_cpu_tensors_are_left_alone(device):
    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    values = torch.rand(5, device=device)
    values.sum().item()
    torch.manual_seed(1)
    x = torch.rand(3)
    return [torch.equal(before, x), type(x).__name__, (x @ x).item() == (before @ before).item()]
