"""A small training program that meets what people meet: breaks, recompiles, a limit, an error, a custom operator."""

import sys

import torch


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        hidden = self.norm(torch.relu(self.linear(x)))
        if hidden.sum() > -1:
            hidden = hidden * 2
        return shifted(hidden) + x


def shifted(x):
    print("shifting")
    return x + 1


@torch.compile
def scaled(x, factor):
    return torch.sin(x) * factor


@torch.compile(dynamic=True, backend="eager")
def halves(x):
    assert x.shape[0] % 2 == 0
    return x.view(2, -1).sum(1)


@torch.compile(backend="eager")
def pinned(x):
    return x.reshape(6, -1) if x.shape[0] == 6 else x


@torch.compile(fullgraph=True)
def whole(x):
    print("not allowed")
    return x


@torch.compile(backend="eager")
def counted(x, text):
    return x + len(text)


@torch.compile(backend="aot_eager")
def squared(x):
    return (x * x).sum()


def main() -> None:
    torch.manual_seed(0)
    model = torch.compile(Block(8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for size in (3, 5, 7):
        scaled(torch.randn(size, 4), 2.0)
    scaled(torch.randn(9, 4), 3.0)
    halves(torch.randn(8))
    data = torch.randn(6, 4)
    torch._dynamo.mark_dynamic(data, 0)
    try:
        pinned(data)
    except Exception as error:
        print(type(error).__name__, file=sys.stderr)
    try:
        whole(torch.randn(2))
    except Exception as error:
        print(type(error).__name__, file=sys.stderr)
    loss = squared(torch.randn(4, requires_grad=True))
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        loss.backward()
    torch._dynamo.config.recompile_limit = 3
    for length in range(5):
        counted(torch.randn(2), "x" * length)


if __name__ == "__main__":
    main()
