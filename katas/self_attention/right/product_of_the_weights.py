# style: the two projections multiplied into one, raw exp, prints, code under __main__
# edge fails: large_scores
import math

import torch
from torch import nn


def linear(i, o):
    return nn.Linear(i, o, bias=False)


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = linear(input_dim, key_dim)
        self.k_proj = linear(input_dim, key_dim)
        self.v_proj = linear(input_dim, value_dim)
        print("made", input_dim, key_dim, value_dim)

    def forward(self, x):
        both = self.q_proj.weight.t() @ self.k_proj.weight  # (input_dim, input_dim)
        scores = (x @ both) @ x.transpose(-1, -2)
        e = torch.exp(scores / math.sqrt(self.q_proj.weight.size(0)))
        return self.v_proj((e @ x) / e.sum(dim=-1, keepdim=True))


if __name__ == "__main__":
    print(SelfAttention(3, 4, 5)(torch.randn(2, 3, 3)).shape)
