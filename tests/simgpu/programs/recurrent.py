"""Recurrent layers in all their forms: results, final states and gradients."""

import time

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence


def ramp(device, *shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32).view(shape) / count - 0.4).to(device, dtype)


def told(value):
    """Every tensor's values, shape, strides and type."""
    if isinstance(value, PackedSequence):
        return [told(value.data), value.batch_sizes.tolist()]
    if isinstance(value, list | tuple):
        return [told(item) for item in value]
    return [value.tolist(), list(value.shape), list(value.stride()), str(value.dtype)]


def trained(layer, device, x, *states):
    """Results and all gradients of a loss over every result."""
    layer = layer.to(device)
    x = x.to(device).requires_grad_()
    results = layer(x, *states)
    flat = [results[0], *(results[1] if isinstance(results[1], tuple) else results[1:])]
    loss = sum((result * ramp(device, *result.shape, dtype=result.dtype)).sum() for result in flat)
    loss.backward()
    gradients = {name: told(p.grad) for name, p in layer.named_parameters()}
    return [told(results), gradients, told(x.grad), [told(state.grad) for state in given_leaves(states)]]


def given_leaves(states):
    flat = [s for state in states for s in (state if isinstance(state, tuple) else (state,))]
    return [state for state in flat if state.requires_grad]


def program_lstm(device):
    return trained(nn.LSTM(3, 4), device, ramp("cpu", 5, 2, 3))


def program_gru(device):
    return trained(nn.GRU(3, 4), device, ramp("cpu", 5, 2, 3))


def program_tanh(device):
    return trained(nn.RNN(3, 4), device, ramp("cpu", 5, 2, 3))


def program_relu(device):
    return trained(nn.RNN(3, 4, nonlinearity="relu"), device, ramp("cpu", 5, 2, 3))


def program_deep_both_ways_batch_first(device):
    settings = {"num_layers": 3, "bidirectional": True, "batch_first": True}
    return [trained(kind(3, 4, **settings), device, ramp("cpu", 2, 5, 3)) for kind in (nn.LSTM, nn.GRU, nn.RNN)]


def program_projected(device):
    layer = nn.LSTM(3, 6, proj_size=2, num_layers=2, bidirectional=True)
    return trained(layer, device, ramp("cpu", 5, 2, 3))


def program_without_biases(device):
    return [trained(kind(3, 4, bias=False), device, ramp("cpu", 5, 2, 3)) for kind in (nn.LSTM, nn.GRU, nn.RNN)]


def program_without_a_batch(device):
    return [trained(kind(3, 4), device, ramp("cpu", 5, 3)) for kind in (nn.LSTM, nn.GRU, nn.RNN)]


def program_given_states(device):
    h, c = (ramp(device, 2, 2, 4).mul(k).detach().requires_grad_() for k in (1, 2))
    return [
        trained(nn.LSTM(3, 4, num_layers=2), device, ramp("cpu", 5, 2, 3), (h, c)),
        trained(nn.GRU(3, 4, num_layers=2), device, ramp("cpu", 5, 2, 3), h),
    ]


def program_frozen_weights(device):
    layer = nn.LSTM(3, 4).to(device).requires_grad_(False)
    layer.bias_hh_l0.requires_grad_(True)
    layer(ramp(device, 5, 2, 3))[0].sum().backward()
    return [layer.weight_ih_l0.grad, told(layer.bias_hh_l0.grad)]


def program_one_result_used(device):
    layer = nn.LSTM(3, 4).to(device)
    layer(ramp(device, 5, 2, 3))[1][1].sum().backward()
    return [told(p.grad) for p in layer.parameters()]


def program_packed(device):
    sequences = [ramp(device, n, 3) for n in (2, 5, 3)]
    results = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        layer = kind(3, 4, num_layers=2, bidirectional=True).to(device)
        output, state = layer(pack_sequence(sequences, enforce_sorted=False))
        padded, lengths = pad_packed_sequence(output, batch_first=True)
        padded.square().sum().backward()
        gradients = [told(p.grad) for p in layer.parameters()]
        results.append([told(output), told(padded), lengths.tolist(), told(state), gradients])
    return results


def program_packed_padded(device):
    layer = nn.LSTM(3, 4, batch_first=True).to(device)
    packed = pack_padded_sequence(ramp(device, 3, 6, 3), [6, 4, 1], batch_first=True)
    return told(layer(packed))


def program_double_precision(device):
    return trained(nn.LSTM(3, 4).double(), device, ramp("cpu", 5, 2, 3, dtype=torch.float64))


def program_half_precision(device):
    layer = nn.GRU(3, 4).to(device, torch.float16)
    output, state = layer(ramp(device, 5, 2, 3, dtype=torch.float16))
    return [round(output.float().sum().item(), 2), str(output.dtype), str(state.dtype)]


def program_evaluation(device):
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5).to(device).eval()
    with torch.no_grad():
        return told(layer(ramp(device, 5, 2, 3)))


def program_inference_mode(device):
    layer = nn.GRU(3, 4).to(device)
    with torch.inference_mode():
        output, state = layer(ramp(device, 5, 2, 3))
    return [told(output), told(state), output.is_inference()]


def program_without_steps_is_refused(device):
    try:
        nn.LSTM(3, 4).to(device)(torch.empty(0, 2, 3, device=device))
    except RuntimeError as error:
        return str(error)


def program_wrong_sizes_are_refused(device):
    found = []
    for layer, shape in ((nn.LSTM(3, 4), (5, 2, 7)), (nn.GRU(3, 4), (5, 2, 2, 3))):
        try:
            layer.to(device)(ramp(device, *shape))
        except (RuntimeError, ValueError) as error:
            found.append(str(error))
    return found


def program_input_overwritten_before_the_look(device):
    layer, x = nn.LSTM(3, 4).to(device), ramp(device, 5, 2, 3)
    with torch.no_grad():
        output = layer(x)[0]
        x.zero_()
        layer.weight_ih_l0.zero_()
    return told(output)


def program_hessian_vector_without_cudnn(device):
    layer, x = nn.LSTM(2, 2).to(device), ramp(device, 3, 1, 2).requires_grad_()
    with torch.backends.cudnn.flags(enabled=False):
        (gradient,) = torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)
    gradient.square().sum().backward()
    return told(x.grad)


def program_functional_gradient(device):
    layer, x = nn.GRU(2, 2).to(device), ramp(device, 3, 1, 2)

    def loss(parameters):
        return torch.func.functional_call(layer, parameters, (x,))[0].square().sum()

    return {name: told(g) for name, g in torch.func.grad(loss)(dict(layer.named_parameters())).items()}


def program_compiled_around(device):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.layer(x.sin())[0][:, -1]).relu()

    model = Last().to(device)
    result = torch.compile(model)(ramp(device, 2, 5, 3))
    result.sum().backward()
    return [told(result), [told(p.grad) for p in model.parameters()]]


def program_captured_by_dynamo(device):
    with torch._dynamo.config.patch(allow_rnn=True):
        layer = nn.GRU(3, 4).to(device)
        return told(torch.compile(lambda x: layer(x)[0] * 2)(ramp(device, 5, 2, 3)))


def program_card_limits(device):
    layer = nn.LSTM(2, 2).to(device)
    x = ramp(device, 3, 1, 2).requires_grad_()
    refused = []
    (gradient,) = torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)
    for wanted in (gradient, layer.eval()(x)[0]):
        try:
            wanted.sum().backward()
        except RuntimeError as error:
            refused.append(str(error))
    return refused


def program_card_lengths_on_the_device(device):
    try:
        pack_padded_sequence(ramp(device, 6, 3, 3), torch.tensor([6, 4, 1], device=device))
    except RuntimeError as error:
        return str(error)


def program_card_autocast(device):
    layer, found = nn.LSTM(3, 4).to(device), []
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast(device, dtype=dtype):
            output, (hidden, cell) = layer(ramp(device, 5, 2, 3))
        output.float().sum().backward()
        found.append([str(output.dtype), str(hidden.dtype), str(cell.dtype), str(layer.weight_ih_l0.grad.dtype)])
    exact = nn.LSTM(3, 4).to(device).double()
    with torch.autocast(device):
        return [*found, str(exact(ramp(device, 5, 2, 3, dtype=torch.float64))[0].dtype)]


def program_card_dropout(device):
    layer = nn.LSTM(3, 64, num_layers=2, dropout=0.5).to(device)
    x = ramp(device, 5, 2, 3)
    torch.manual_seed(1)
    first, second = layer(x)[0], layer(x)[0]
    torch.manual_seed(1)
    again = layer(x)[0]
    again.sum().backward()
    kept = layer.weight_ih_l1.grad.count_nonzero().item()
    return [torch.equal(first, again), torch.equal(first, second), torch.equal(first, first), kept > 0]


def program_card_large(device):
    layer = nn.LSTM(1024, 1024, num_layers=4, batch_first=True, device=device)
    x = torch.randn(16, 512, 1024, device=device)
    before = time.process_time()
    output, (hidden, cell) = layer(x)
    output.sum().backward()
    seconds = time.process_time() - before
    shapes = [list(t.shape) for t in (output, hidden, cell, layer.weight_hh_l3.grad)]
    return [shapes, list(output.stride()), seconds, output[0, 0, 0].item()]
