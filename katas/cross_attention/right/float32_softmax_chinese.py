# style: softmax in float32 and cast back, Chinese comments and names, prints, code under __main__
# edge fails: nothing_to_attend_to, float64_throughout
import torch
import torch.nn as nn


class CrossAttention(nn.Module):
    """交叉注意力：查询来自 x，键和值来自 context"""

    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim 必须能被 num_heads 整除")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=True)
        self.k_proj = nn.Linear(context_dim, embed_dim, bias=True)
        self.v_proj = nn.Linear(context_dim, embed_dim, bias=True)
        self.o_proj = nn.Linear(embed_dim, embed_dim, bias=True)

    def 拆分(self, t):
        return t.reshape(t.size(0), t.size(1), self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, context, keep=None):
        q, k, v = self.拆分(self.q_proj(x)), self.拆分(self.k_proj(context)), self.拆分(self.v_proj(context))
        print("q", q.shape, "k", k.shape)
        scores = q.matmul(k.transpose(2, 3)) / self.head_dim**0.5
        if keep is not None:
            # 被遮住的位置设为负无穷
            scores = scores.masked_fill(keep.view(keep.size(0), 1, 1, keep.size(1)) == 0, float("-inf"))
        weights = scores.float().softmax(dim=-1).type_as(v)
        out = weights.matmul(v)
        out = out.transpose(1, 2).reshape(x.size(0), x.size(1), -1)
        return self.o_proj(out)


if __name__ == "__main__":
    model = CrossAttention(12, 8, 3)
    print(model(torch.randn(2, 4, 12), torch.randn(2, 5, 8)).shape)
