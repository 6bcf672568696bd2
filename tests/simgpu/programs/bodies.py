"""Programs in which a parameter or buffer changes what it holds, and the values that the device must get right."""

import copy
import io
import pickle

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))


def values(module):
    return {name: tensor.double().flatten().tolist() for name, tensor in module.state_dict().items()}


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def program_device_then_bfloat16(device):
    model = net().to(device).bfloat16()
    branch = "positive" if model[0].weight.sum() > 0 else "negative"
    return [branch, values(model)]


def program_bfloat16_then_device(device):
    return values(net().bfloat16().to(device))


def program_device_then_half_then_float(device):
    return values(net().to(device).half().float())


def program_device_and_dtype_at_once(device):
    return values(net().to(device, torch.float64))


def program_there_and_back(device):
    model = net()
    before = list(model.parameters())
    model.to(device).cpu().to(device).cpu()
    same = all(a is b for a, b in zip(before, model.parameters(), strict=True))
    return [same, values(model), model[0].weight.device.type, type(model[0].weight).__name__]


def program_memory_format(device):
    model = nn.Conv2d(3, 4, 3).to(device).to(memory_format=torch.channels_last)
    return [values(model), model.weight.is_contiguous(memory_format=torch.channels_last)]


def program_identity_is_kept(device):
    model = net()
    before = list(model.parameters())
    model.to(device).half()
    return [a is b for a, b in zip(before, model.parameters(), strict=True)]


def program_still_parameters(device):
    model = net().to(device).bfloat16()
    parameter = model[0].weight
    return [isinstance(parameter, nn.Parameter), parameter.is_leaf, parameter.requires_grad, parameter.dtype.itemsize]


def program_frozen_stays_frozen(device):
    model = net()
    model[0].weight.requires_grad_(False)
    model.to(device).bfloat16()
    return [p.requires_grad for p in model.parameters()]


def program_gradients_move_too(device):
    model = net()
    model(torch.ones(2, 3)).sum().backward()
    model.to(device).double()
    return [(p.grad.device.type == device, p.grad.dtype == p.dtype, p.grad.tolist()) for p in model.parameters()]


def program_data_assigned_cast(device):
    model = net().to(device)
    for p in model.parameters():
        p.data = p.data.bfloat16()
    return [values(model), str(model[0].weight.dtype)]


def program_data_assigned_move(device):
    model = net()
    before = list(model.parameters())
    for p in model.parameters():
        p.data = p.data.to(device)
    same = all(a is b for a, b in zip(before, model.parameters(), strict=True))
    return [same, values(model), model[0].weight.device.type == device]


def program_data_assigned_back(device):
    model = net().to(device)
    for p in model.parameters():
        p.data = p.data.cpu()
    return [values(model), model[0].weight.device.type, model[0].weight.requires_grad]


def program_data_written(device):
    model = net().to(device)
    model[0].weight.data.mul_(3)
    model[0].weight.data[0] = 5
    model[0].bias.data.copy_(torch.arange(4.0))
    model[2].weight.data = model[2].weight.data * 2
    return values(model)


def program_data_into_one_flat_buffer(device):
    model = net().to(device)
    parameters = list(model.parameters())
    flat = torch.cat([p.detach().flatten() for p in parameters])
    at = 0
    for p in parameters:
        p.data = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    flat.mul_(2)
    return values(model)


def program_plain_tensor_data(device):
    x = torch.arange(4.0)
    alias = x
    x.data = x.data.to(device)
    x.add_(1)
    return [alias is x, alias.tolist(), alias.device.type == device]


def program_load_state_dict(device):
    model, other = net().to(device), net()
    model.load_state_dict(other.state_dict())
    return values(model) == values(other)


def program_load_state_dict_after_cast(device):
    model, other = net().to(device).bfloat16(), net()
    model.load_state_dict(other.state_dict())
    return values(model)


def program_load_state_dict_assign(device):
    model, other = net().to(device), net().to(device).double()
    model.load_state_dict(other.state_dict(), assign=True)
    return [values(model), str(model[0].weight.dtype), isinstance(model[0].weight, nn.Parameter)]


def program_load_state_dict_by_swapping(device):
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model, other = net().to(device), net().to(device)
        kept = model[0].weight
        model.load_state_dict(other.state_dict())
        model.double()
        return [values(model), kept is model[0].weight]
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def program_swap_tensors(device):
    a, b = torch.arange(3.0).to(device), torch.arange(3.0, 7.0, dtype=torch.float64).to(device)
    torch.utils.swap_tensors(a, b)
    a.add_(1)
    return [a.tolist(), b.tolist(), str(a.dtype)]


def program_swapped_after_use(device):
    a, b = torch.arange(3.0).to(device), torch.ones(3).to(device)
    doubled = a * 2
    torch.utils.swap_tensors(a, b)
    return [doubled.tolist(), a.tolist(), b.tolist()]


def program_tied_weights(device):
    model = Tied().to(device).bfloat16()
    with torch.no_grad():
        model.embed.weight.fill_(3)
    return [model.head.weight is model.embed.weight, values(model)]


def program_tied_weights_deep_copied(device):
    model = Tied().to(device)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.embed.weight.add_(1)
    return [twin.head.weight is twin.embed.weight, values(model), values(twin)]


def program_deep_copy(device):
    model = net().to(device)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        model[0].weight.zero_()
    twin.half()
    return [values(model), values(twin), isinstance(twin[0].weight, nn.Parameter), twin[0].weight.requires_grad]


def program_deep_copy_keeps_views_together(device):
    base = torch.arange(6.0).to(device)
    pair = copy.deepcopy({"base": base, "part": base[2:4]})
    pair["base"].mul_(10)
    return [pair["part"].tolist(), base.tolist()]


def program_deep_copy_of_an_optimiser(device):
    model = net().to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    step(model, optimiser, device)
    model, optimiser = copy.deepcopy((model, optimiser))
    step(model, optimiser, device)
    return values(model)


def program_weight_norm(device):
    model = parametrizations.weight_norm(nn.Linear(3, 4).to(device))
    model.bfloat16().float()
    return [values(model), model.weight.tolist()]


def program_weight_norm_before_moving(device):
    model = parametrizations.weight_norm(nn.Linear(3, 4)).to(device)
    return [values(model), model.weight.tolist(), model(torch.ones(2, 3, device=device)).tolist()]


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def program_parametrisation_removed(device):
    model = nn.Linear(3, 4).to(device)
    parametrize.register_parametrization(model, "weight", Double())
    model.double()
    model.weight = torch.ones(4, 3, dtype=torch.float64, device=device)
    inside = values(model)
    parametrize.remove_parametrizations(model, "weight")
    return [inside, values(model)]


def program_spectral_norm(device):
    model = parametrizations.spectral_norm(nn.Linear(3, 4).to(device))
    return [tuple(model(torch.ones(2, 3, device=device)).shape), model.weight.norm(2).item() > 0]


def program_pruned(device):
    model = nn.Linear(4, 4).to(device)
    prune.l1_unstructured(model, "weight", amount=0.5)
    model.bfloat16()
    return [values(model), model.weight.count_nonzero().item()]


def program_optimiser_made_before_the_move(device):
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.to(device)
    step(model, optimiser, device)
    step(model, optimiser, device)
    return values(model)


def program_optimiser_state_loaded(device):
    model = net().to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimiser, device)
    saved = copy.deepcopy(optimiser.state_dict())
    fresh = torch.optim.AdamW(model.parameters(), lr=0.5)
    fresh.load_state_dict(saved)
    step(model, fresh, device)
    return values(model)


def step(model, optimiser, device):
    optimiser.zero_grad()
    model(torch.arange(6.0, device=device).view(2, 3)).pow(2).sum().backward()
    optimiser.step()


def program_vector_to_parameters(device):
    model = net().to(device)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    return values(model)


def program_moving_average(device):
    model = net().to(device)
    average = torch.optim.swa_utils.AveragedModel(model)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    average.update_parameters(model)
    average.update_parameters(model)
    return values(average)


def program_running_statistics(device):
    model = nn.BatchNorm2d(3).to(device)
    model(torch.arange(54.0, device=device).view(2, 3, 3, 3))
    model.half().float()
    return values(model)


def program_storage_set(device):
    x, y = torch.arange(4.0).to(device), torch.arange(8.0).to(device)
    x.set_(y[2:6])
    y.mul_(2)
    return x.tolist()


def program_resized(device):
    x = torch.arange(6.0).to(device)
    x.resize_(2, 2)
    return x.tolist()


def program_made_empty_on_the_device(device):
    model = nn.Linear(3, 4, device="meta").to_empty(device=device)
    nn.init.constant_(model.weight, 2.0)
    nn.init.zeros_(model.bias)
    return values(model)


def program_lazy(device):
    model = nn.Sequential(nn.LazyLinear(4)).to(device)
    return list(model(torch.ones(2, 3, device=device)).shape)


def program_default_device(device):
    with torch.device(device):
        model = nn.Linear(3, 4)
    nn.init.constant_(model.weight, 0.5)
    return [model.weight.device.type == device, model.weight.sum().item()]


def program_recurrent_layer(device):
    model = nn.LSTM(3, 4, num_layers=2, batch_first=True).to(device).double()
    out, (hidden, cell) = model(torch.arange(12.0, dtype=torch.float64, device=device).view(2, 2, 3))
    return [out.tolist(), hidden.tolist(), cell.tolist()]


def program_gated_unit(device):
    model = nn.GRU(3, 4, batch_first=True).double().to(device)
    return model(torch.arange(12.0, dtype=torch.float64, device=device).view(2, 2, 3))[0].tolist()


def program_hook_after_the_move(device):
    model = net()
    seen = []
    model[0].weight.register_hook(lambda gradient: seen.append(gradient.device.type == device))
    model.to(device)
    model(torch.ones(2, 3, device=device)).sum().backward()
    return seen if device == "cpu" else [bool(seen and seen[0])]


def program_attributes_of_a_parameter(device):
    model = net()
    model[0].weight.tag = "mine"
    model.to(device).half()
    return [model[0].weight.tag, hasattr(copy.deepcopy(model)[0].weight, "tag")]


def program_used_then_moved(device):
    model = net()
    loss = model(torch.ones(2, 3)).sum()
    model.to(device)
    return [values(model), loss.requires_grad]


def saved_and_loaded(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def program_saved_on_the_device_and_loaded(device):
    model = net().to(device)
    state = saved_and_loaded(model.state_dict())
    fresh = net().to(device)
    fresh.load_state_dict(state)
    return [values(fresh), {name: tensor.device.type == device for name, tensor in state.items()}]


def program_saved_on_the_device_and_loaded_on_the_cpu(device):
    state = saved_and_loaded(Tied().to(device).half().state_dict(), map_location="cpu")
    shared = state["embed.weight"].data_ptr() == state["head.weight"].data_ptr()
    return [{name: (t.tolist(), t.device.type, str(t.dtype)) for name, t in state.items()}, shared]


def program_saved_on_the_cpu_and_loaded_on_the_device(device):
    state = saved_and_loaded(Tied().state_dict(), map_location=device)
    state["embed.weight"].mul_(2)  # the head has the same storage
    return {name: (t.tolist(), t.device.type == device) for name, t in state.items()}


def program_loaded_by_every_form_of_map_location(device):
    forms = (torch.device(device), device, lambda storage, _: storage, {"cpu": device})
    return [saved_and_loaded(torch.arange(3.0), map_location=form).tolist() for form in forms]


def program_module_saved_whole(device):
    model = saved_and_loaded(net().to(device), weights_only=False)
    return [values(model), isinstance(model[0].weight, nn.Parameter), model[0].weight.device.type == device]


def program_pickled(device):
    view = torch.arange(6.0).to(device).view(2, 3).t()
    view.requires_grad_()
    twin = pickle.loads(pickle.dumps(view))
    model = pickle.loads(pickle.dumps(Tied().to(device)))
    tied = model.head.weight is model.embed.weight
    return [twin.tolist(), list(twin.stride()), twin.requires_grad, twin.device.type == device, values(model), tied]


def program_optimiser_saved_and_loaded(device):
    model = net().to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimiser, device)
    fresh = torch.optim.AdamW(model.parameters(), lr=0.5)
    fresh.load_state_dict(saved_and_loaded(optimiser.state_dict()))
    step(model, fresh, device)
    return values(model)


def program_shallow_copy(device):
    x = torch.arange(3.0).to(device)
    alias = copy.copy(x)
    model = net().to(device)
    twin = copy.copy(model)
    twin[0].weight.data.mul_(2)
    return [alias.tolist(), values(model), copy.copy(model[0].weight).tolist()]


def program_parameter_reassigned(device):
    model = net().to(device)
    model[0].weight = nn.Parameter(model[0].weight * 2)
    model[2].bias = nn.Parameter(torch.ones(2, device=device), requires_grad=False)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    step(model, optimiser, device)
    return values(model)


def program_registered_anew(device):
    model = net().to(device)
    model[0].register_parameter("bias", nn.Parameter(model[0].bias.detach() + 1))
    model[0].register_buffer("extra", torch.arange(3.0).to(device), persistent=True)
    del model[2].bias
    model[2].register_buffer("bias", torch.zeros(2, device=device))
    model[0].extra = model[0].extra * 2
    return values(model.half())


def program_parameters_in_lists(device):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.several = nn.ParameterList([torch.ones(2), torch.arange(3.0)])
            self.named = nn.ParameterDict({"a": torch.full((2,), 2.0)})

    model = Listed().to(device).double()
    model.several.append(nn.Parameter(torch.zeros(1, device=device)))
    return [values(model), [isinstance(p, nn.Parameter) for p in model.parameters()]]


def program_made_empty_then_loaded(device):
    model = nn.Linear(3, 4, device="meta").to_empty(device=device)
    model.load_state_dict(nn.Linear(3, 4).state_dict())
    other = nn.Linear(3, 4, device="meta")
    other.load_state_dict({k: v.to(device) for k, v in nn.Linear(3, 4).state_dict().items()}, assign=True)
    emptied = nn.Linear(3, 4).to_empty(device=device)
    emptied.load_state_dict(model.state_dict())
    return [values(model), values(other), values(emptied), isinstance(other.weight, nn.Parameter)]


def program_data_exchanged_and_restored(device):
    model, held = net().to(device), {}
    for name, p in model.named_parameters():  # as an average of weights is put in for evaluation
        held[name] = p.data
        p.data = torch.full_like(p, 2.0)
    inside = model.eval()(torch.ones(2, 3, device=device)).tolist()
    for name, p in model.named_parameters():
        p.data = held[name]
    return [inside, values(model)]


def program_data_of_another_size(device):
    model = nn.Linear(3, 4).to(device)
    model.weight.data = torch.cat([model.weight.data, torch.ones(2, 3, device=device)])
    model.bias.data = torch.zeros(6, device=device)
    model(torch.ones(2, 3, device=device)).sum().backward()
    return [values(model), model.weight.grad.tolist()]


def program_data_cast_on_the_cpu_then_moved(device):
    model = net()
    for p in model.parameters():
        p.data = p.data.half().to(device)
    return [values(model), [str(p.dtype) for p in model.parameters()]]


def program_offloaded_and_back(device):
    model = net()
    for _ in range(2):
        for p in model.parameters():
            p.data = p.data.to(device)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(2)
        for p in model.parameters():
            p.data = p.data.to("cpu")
    return values(model)


def program_swap_tensors_of_modules(device):
    first, second = nn.Linear(3, 4).to(device), nn.Linear(3, 4).to(device)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.utils.swap_tensors(a, b)
    torch.utils.swap_tensors(first.bias, nn.Parameter(torch.ones(4, dtype=torch.float64).to(device)))
    return [values(first), values(second), isinstance(first.weight, nn.Parameter), str(first.bias.dtype)]


def program_swap_tensors_across_devices(device):
    here, there = torch.arange(3.0), torch.ones(2).to(device)
    torch.utils.swap_tensors(here, there)
    there.add_(1)
    return [here.tolist(), there.tolist(), there.device.type, here.device.type == device]


def program_old_weight_norm(device):
    model = nn.utils.weight_norm(nn.Linear(3, 4)).to(device).double()
    x = torch.ones(2, 3, dtype=torch.float64, device=device)
    before = model(x).tolist()
    nn.utils.remove_weight_norm(model)
    return [before, values(model), model(x).tolist()]


def program_old_spectral_norm(device):
    model = nn.utils.spectral_norm(nn.Linear(3, 4)).to(device)
    model(torch.ones(2, 3, device=device))
    return [list(model.weight.shape), sorted(model.state_dict())]


def program_orthogonal(device):
    model = parametrizations.orthogonal(nn.Linear(3, 3)).to(device)
    product = model.weight @ model.weight.T
    return [(product - torch.eye(3, device=device)).abs().max().item() < 1e-4]


def program_parametrised_copy(device):
    model = nn.Linear(3, 4).to(device)
    parametrize.register_parametrization(model, "weight", Double())
    twin = copy.deepcopy(model).half()
    with parametrize.cached():
        inside = twin.weight.tolist()
    return [inside, values(twin), values(model)]


def program_functional_call(device):
    model = Tied().to(device)
    replaced = {"embed.weight": torch.ones(7, 4, device=device), "scale": torch.zeros(4, device=device)}
    output = torch.func.functional_call(
        nn.Sequential(model.head), {"0.weight": replaced["embed.weight"]}, (torch.ones(2, 4, device=device),)
    )
    return [output.tolist(), values(model)]


def program_stacked_models(device):
    models = [nn.Linear(3, 4).to(device) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")

    def call(p, b, x):
        return torch.func.functional_call(base, (p, b), (x,))

    return torch.vmap(call, in_dims=(0, 0, None))(parameters, buffers, torch.ones(2, 3, device=device)).tolist()


def program_data_parallel(device):
    model = nn.DataParallel(net().to(device))
    output = model(torch.arange(6.0, device=device).view(2, 3))
    output.sum().backward()
    return [output.tolist(), values(model), [p.grad is not None for p in model.parameters()]]


def program_wrapped_then_moved(device):
    inner = net()
    average = torch.optim.swa_utils.AveragedModel(inner, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    average.to(device)
    with torch.no_grad():
        for p in inner.parameters():
            p.add_(1)
    inner.to(device)
    average.update_parameters(inner)
    average.update_parameters(inner)
    return [values(average), values(inner)]


def program_frozen_by_vector(device):
    model = net().to(device)
    vector = nn.utils.parameters_to_vector(p for p in model.parameters() if p.requires_grad)
    nn.utils.vector_to_parameters(torch.ones_like(vector), model.parameters())
    vector.zero_()
    model.bfloat16()
    return values(model)


def program_clipped_and_zeroed(device):
    model = net().to(device)
    model(torch.arange(6.0, device=device).view(2, 3)).square().sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
    kept = [p.grad.tolist() for p in model.parameters()]
    model.zero_grad(set_to_none=False)
    model.requires_grad_(False).half()
    return [norm, kept, [p.grad.tolist() for p in model.parameters()], values(model)]


def program_fused_with_normalisation(device):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(device).eval()
    fused = nn.utils.fusion.fuse_conv_bn_eval(*model)
    x = torch.ones(1, 3, 4, 4, device=device)
    return [values(fused), (fused(x) - model(x)).abs().max().item() < 1e-4]


def program_shared_memory(device):
    model = net()
    model.share_memory()
    model.to(device).share_memory()
    return values(model)


def program_set_of_a_parameter(device):
    weight, other = nn.Parameter(torch.arange(4.0).to(device)), torch.ones(6).to(device)
    with torch.no_grad():
        weight.set_(other[1:5])
        other.mul_(3)
    return [weight.tolist(), weight.requires_grad]


def program_type_method(device):
    x = torch.arange(3.0).to(device)
    model = nn.Linear(3, 4).to(device).type(torch.float64)
    return [x.type(torch.float16).tolist(), x.type_as(model.weight).tolist(), values(model)]


def program_buffers_assigned(device):
    model = nn.BatchNorm1d(3).to(device)
    model.running_mean = torch.arange(3.0, device=device)
    model.running_var.data = torch.full((3,), 4.0, device=device)
    model.num_batches_tracked += 2
    return [values(model.half()), model.eval()(torch.ones(2, 3, device=device).half()).tolist()]


def program_swap_tensors_made_in_a_new_way(device):
    first, second = torch.ones(3, 5, 7).to(device).tril(2), torch.zeros(2).to(device).logit(0.25)
    torch.utils.swap_tensors(first, second)
    return [tuple(first.shape), second.sum().item()]
