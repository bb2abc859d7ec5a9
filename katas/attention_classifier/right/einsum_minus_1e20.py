# style: einsum, the mask as 0 and 1 with -1e20, layers in a ModuleDict
# edge fails: float64_throughout, half_precision
import torch
from torch import nn


class AttentionClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_classes):
        super(AttentionClassifier, self).__init__()
        if embed_dim // num_heads * num_heads != embed_dim:
            raise ValueError("embed_dim needs to be divisible by num_heads")
        self.heads, self.head_dim = num_heads, embed_dim // num_heads
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        names = ("q_proj", "k_proj", "v_proj", "o_proj")
        self.attention = nn.ModuleDict({name: nn.Linear(embed_dim, embed_dim) for name in names})
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, token_ids, keep=None):
        N, L = token_ids.shape
        x = self.embedding(token_ids)
        mask = torch.ones_like(token_ids) if keep is None else keep.int()
        q, k, v = (self.attention[n](x).reshape(N, L, self.heads, self.head_dim) for n in ("q_proj", "k_proj", "v_proj"))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        energy = energy.masked_fill(mask[:, None, None] == 0, float("-1e20"))
        attention = torch.softmax(energy / (self.head_dim ** (1 / 2)), dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", [attention, v]).reshape(N, L, -1)
        out = self.attention["o_proj"](out)
        weight = mask / mask.sum(1, keepdim=True).clamp(min=1)
        return self.classifier(torch.einsum("nl,nle->ne", weight.to(out.dtype), out))
