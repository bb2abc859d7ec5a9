import torch
import torch.nn as nn


class LuongAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, decoder_state, encoder_outputs):
        # decoder_state (1, batch, hidden), encoder_outputs (batch, steps, hidden)
        state = decoder_state[-1].unsqueeze(2)
        scores = torch.bmm(self.W(encoder_outputs), state).squeeze(2)
        weights = scores.softmax(dim=1)
        context = torch.bmm(weights.unsqueeze(1), encoder_outputs)
        return context, weights
