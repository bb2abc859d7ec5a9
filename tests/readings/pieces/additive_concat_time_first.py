import torch
import torch.nn as nn
import torch.nn.functional as F


class Attn(nn.Module):
    """The weights of the source words for one step of the decoder."""

    def __init__(self, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.attn = nn.Linear(hidden_size * 2, hidden_size)
        self.v = nn.Parameter(torch.rand(hidden_size))

    def forward(self, hidden, encoder_outputs):
        # hidden (1, batch, hidden_size), encoder_outputs (src_len, batch, hidden_size)
        src_len = encoder_outputs.size(0)
        state = hidden.expand(src_len, -1, -1)
        energy = torch.tanh(self.attn(torch.cat((state, encoder_outputs), dim=2)))
        scores = torch.sum(self.v * energy, dim=2).t()  # (batch, src_len)
        return F.softmax(scores, dim=1).unsqueeze(1)
