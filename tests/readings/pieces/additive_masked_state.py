import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, enc_hid_dim, dec_hid_dim):
        super().__init__()
        self.attn_fc = nn.Linear(enc_hid_dim + dec_hid_dim, dec_hid_dim)
        self.v_fc = nn.Linear(dec_hid_dim, 1, bias=False)

    def forward(self, hidden, encoder_outputs, mask):
        """hidden (batch, dec_hid_dim); encoder_outputs (src_len, batch, enc_hid_dim); mask (batch, src_len), 0 = padding."""
        src_len, batch_size = encoder_outputs.shape[:2]
        hidden = hidden.unsqueeze(1).repeat(1, src_len, 1)
        encoder_outputs = encoder_outputs.permute(1, 0, 2)
        energy = torch.tanh(self.attn_fc(torch.cat((hidden, encoder_outputs), dim=2)))
        attention = self.v_fc(energy).squeeze(2)
        attention = attention.masked_fill(mask == 0, -1e10)
        return torch.softmax(attention, dim=1)
