"""An LSTM: the rest of the function runs uncompiled."""

import torch

BACKEND = "eager"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 4)

    def forward(self, x):
        y = x * 2
        out, _ = self.lstm(y)
        return out.relu()


def get_inputs():
    return (torch.ones(3, 1, 4),)
