"""Two ranks of one program, which differ: one of them has a break that the other has not."""

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def reduced(x, rank):
    total = torch.distributed._functional_collectives.all_reduce(x.sin(), "sum", dist.group.WORLD)
    if rank == 1:
        torch._dynamo.graph_break()
    return total.cos()


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    compiled = torch.compile(reduced)
    compiled(torch.randn(4), rank)
    dist._DEFAULT_FIRST_BUCKET_BYTES = 256  # so that a small model has several buckets
    net = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=0.0004)
    torch.compile(net, backend="aot_eager")(torch.randn(2, 8)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
