import torch
from torch import nn


class LuongAttention(nn.Module):
    def __init__(self, dec_dim, enc_dim):
        super().__init__()
        self.attn = nn.Linear(enc_dim, dec_dim, bias=False)

    def forward(self, decoder_hidden, encoder_outputs, mask=None):
        """mask (batch, source length): 1 for words, 0 for padding."""
        energy = torch.bmm(decoder_hidden, self.attn(encoder_outputs).transpose(1, 2))
        if mask is not None:
            energy = energy.masked_fill(mask.unsqueeze(1) == 0, -1e10)
        attention = torch.softmax(energy, dim=-1)
        return torch.bmm(attention, encoder_outputs), attention
