from torch import nn


class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.high = 0.0

    def forward(self, x):  # expect: recompile
        y = self.lin(x).sigmoid()
        self.high = max(self.high, y.max().item())  # expect: graph-break GB0124 split x5; recompile
        return x * y


class Stack(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.first = Gate(dim)
        self.second = Gate(dim)

    def forward(self, x):
        x = self.first(x)
        return self.second(x)
