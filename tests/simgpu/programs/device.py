"""What a program can ask about the simulated device itself, for sim:H200 only."""

import os

import torch

from inductoscope.compiler import simgpu
from inductoscope.protocol import devices

H200, A100, MI300X = map(devices.find, ("H200", "A100", "MI300X"))


def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return "accepted"


def program_properties(device):
    p = torch.cuda.get_device_properties(0)
    return [p.name, p.major, p.minor, p.multi_processor_count, torch.cuda.mem_get_info()[1] == p.total_memory]


def program_there_is_one_device(device):
    default = torch.ones(1, device=device).device
    return [torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_bf16_supported(), str(default)]


def program_other_ordinals(device):
    calls = (lambda: torch.ones(1, device="cuda:1"), lambda: torch.ones(1).to("cuda:3"))
    return [refusal(call) for call in calls]


def program_streams_and_events(device):
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.ones(2, device=device).add_(1)
    torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
    torch.cuda.synchronize()
    event.synchronize()
    return [x.tolist(), torch.cuda.memory_allocated() >= 0]


def program_simulated_again(device):
    first = simgpu.active()
    return [
        simgpu.simulate(H200) is first,
        refusal(lambda: simgpu.simulate(A100)),
        refusal(lambda: first.retarget(MI300X)),
    ]


def program_retargeted_in_a_forked_child(device):
    x = torch.ones(3, device=device, requires_grad=True)
    x.sin().sum().backward()
    if (child := os.fork()) == 0:
        simgpu.active().retarget(A100)
        y = torch.full((3,), 2.0, device=device, requires_grad=True)
        (y * y).sum().backward()
        good = y.grad.tolist() == [4.0] * 3 and torch.cuda.get_device_capability() == (8, 0)
        os._exit(0 if good else 1)
    return [os.waitpid(child, 0)[1], torch.cuda.get_device_name()]


def program_moved(device):
    simulation = simgpu.active()
    linear = torch.nn.Linear(2, 2)
    leaf = torch.ones(2, requires_grad=True)
    moved = simulation.move({"m": [linear, None, "text"], "x": (leaf, leaf * 2), 3: torch.arange(3)})
    x, twice = moved["x"]
    return [
        moved["m"][0] is linear,
        moved["m"][1:],
        all(t.is_cuda for t in (linear.weight, x, twice, moved[3])),
        [x.is_leaf, x.requires_grad, twice.requires_grad],
        simulation.move(x) is x,
    ]
