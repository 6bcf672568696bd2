"""A coroutine around compiled code, and a compiled coroutine function."""

import asyncio

import torch

ENTRY = "step"


def step(x):
    return x.tanh() + 1


async def serve(fn, x):
    await asyncio.sleep(0)
    return fn(x)


def exercise(fn):
    async def both():
        await asyncio.gather(serve(fn, torch.randn(3)), serve(fn, torch.randn(4)), serve(fn, torch.randn(5)))

    asyncio.run(both())
