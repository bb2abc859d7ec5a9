# style: softmax in float32 and cast back, masked in place on one's own scores, empty rows emptied
# edge fails: float64_throughout
import torch
from torch import Tensor, nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.k_proj = nn.Linear(in_features=key_dim, out_features=query_dim, bias=False)

    def extra_repr(self) -> str:
        return f"{self.query_dim}, {self.key_dim}"

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        if keep is None:
            keep = torch.ones(keys.shape[:2], dtype=torch.bool, device=keys.device)
        scores = torch.baddbmm(query.new_zeros(1, 1, 1), query, self.k_proj(keys).transpose(1, 2)).float()
        scores.masked_fill_(~keep[:, None], torch.finfo(torch.float32).min)
        weights = scores.softmax(dim=-1) * keep.any(1)[:, None, None]
        return weights.to(values.dtype) @ values
