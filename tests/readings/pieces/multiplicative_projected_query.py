import torch
import torch.nn as nn


class GeneralAttention(nn.Module):
    """Luong's score `general` with the matrix on the side of the decoder. Returns the weights."""

    def __init__(self, decoder_dim, encoder_dim):
        super().__init__()
        self.transform = nn.Linear(decoder_dim, encoder_dim, bias=False)

    def forward(self, decoder_output, encoder_outputs, src_mask=None):
        # decoder_output (batch, 1, decoder_dim); src_mask (batch, 1, source length): True = a word
        scores = self.transform(decoder_output) @ encoder_outputs.transpose(1, 2)
        if src_mask is not None:
            scores = scores.masked_fill(~src_mask, float("-inf"))
        return torch.softmax(scores, dim=-1)
