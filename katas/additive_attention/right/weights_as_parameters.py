# style: weights as bare parameters, tanh from exp, float32 softmax cast back, helper classes, prints
# edge fails: nothing_to_attend_to, float64_throughout
import torch
from torch import nn


class Map(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(outputs, inputs))

    def __matmul__(self, other):
        return other @ self.weight.T


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj, self.k_proj, self.score_proj = Map(query_dim, hidden_dim), Map(key_dim, hidden_dim), Map(hidden_dim, 1)

    def forward(self, query, keys, values, keep=None):
        print(query.shape, keys.shape)
        pairs = (self.q_proj @ query)[:, :, None] + (self.k_proj @ keys)[:, None]
        hidden = 2 * torch.sigmoid(2 * pairs) - 1
        scores = (self.score_proj @ hidden)[..., 0]
        if keep is not None:
            scores = torch.where(keep[:, None], scores, torch.finfo(scores.dtype).min)
        return scores.softmax(-1, dtype=torch.float32).to(values.dtype) @ values


if __name__ == "__main__":
    print(AdditiveAttention(2, 3, 4)(torch.randn(1, 2, 2), torch.randn(1, 3, 3), torch.randn(1, 3, 5)).shape)
