# style: one sequence at a time, padding cut away; Chinese comments, prints, code under __main__
import torch
from torch import nn

print("attention_classifier: 已载入")


class 注意力(nn.Module):
    def __init__(self, 宽, 头):
        super().__init__()
        if 宽 % 头 != 0:
            raise ValueError("宽度必须能被头数整除")
        self.头 = 头
        for 名 in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, 名, nn.Linear(宽, 宽))

    def forward(self, x):  # (L, E)，没有填充
        各头 = []
        for q, k, v in zip(*(p(x).chunk(self.头, dim=-1) for p in (self.q_proj, self.k_proj, self.v_proj))):
            各头.append(torch.softmax(q @ k.T * q.shape[-1] ** -0.5, dim=-1) @ v)
        return self.o_proj(torch.cat(各头, dim=-1))


class AttentionClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.attention = 注意力(embed_dim, num_heads)
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, token_ids, keep=None):
        结果 = []
        for b, ids in enumerate(token_ids):
            if keep is not None:
                ids = ids[keep[b]]
            if len(ids) == 0:  # 没有真实的词
                结果.append(self.classifier(self.embedding.weight.new_zeros(self.embedding.embedding_dim)))
            else:
                结果.append(self.classifier(self.attention(self.embedding(ids)).mean(dim=0)))
        return torch.stack(结果)


if __name__ == "__main__":
    print(AttentionClassifier(5, 6, 2, 3)(torch.tensor([[1, 2, 3]])))
    raise SystemExit
