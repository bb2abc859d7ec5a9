import torch
from torch import nn
import torch.nn.functional as F


class Attn(nn.Module):
    def __init__(self, method, hidden_size):
        super().__init__()
        self.method = method
        if method not in ("dot", "general"):
            raise ValueError(method, "is no attention method")
        if method == "general":
            self.attn = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):
        # hidden (1, batch, hidden_size), encoder_outputs (max_len, batch, hidden_size)
        energy = self.attn(encoder_outputs) if self.method == "general" else encoder_outputs
        energies = torch.sum(hidden * energy, dim=2).t()  # (batch, max_len)
        return F.softmax(energies, dim=1).unsqueeze(1)
