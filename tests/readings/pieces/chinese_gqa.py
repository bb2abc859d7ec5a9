# 手写 GQA：多个 query 头共用一组 key / value 头
import math

import torch
import torch.nn as nn


class GroupQueryAttention(nn.Module):
    def __init__(self, hidden_dim, nums_head, nums_key_value_head):
        super().__init__()
        assert hidden_dim % nums_head == 0  # 必须整除
        assert nums_head % nums_key_value_head == 0
        self.hidden_dim = hidden_dim
        self.nums_head = nums_head
        self.nums_key_value_head = nums_key_value_head
        self.head_dim = hidden_dim // nums_head

        self.q_proj = nn.Linear(hidden_dim, nums_head * self.head_dim)
        self.k_proj = nn.Linear(hidden_dim, nums_key_value_head * self.head_dim)
        self.v_proj = nn.Linear(hidden_dim, nums_key_value_head * self.head_dim)
        self.o_proj = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, X, attention_mask=None):
        # X 的形状：(batch, seq, hidden_dim)
        batch_size, seq, _ = X.size()
        q = self.q_proj(X).view(batch_size, seq, self.nums_head, self.head_dim)
        k = self.k_proj(X).view(batch_size, seq, self.nums_key_value_head, self.head_dim)
        v = self.v_proj(X).view(batch_size, seq, self.nums_key_value_head, self.head_dim)
        q = q.transpose(1, 2)
        k = k.transpose(1, 2)
        v = v.transpose(1, 2)

        # 把 k 和 v 的头复制到和 q 一样多
        k = k.repeat_interleave(self.nums_head // self.nums_key_value_head, dim=1)
        v = v.repeat_interleave(self.nums_head // self.nums_key_value_head, dim=1)

        attention_score = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            attention_score = attention_score.masked_fill(attention_mask == 0, float("-inf"))
        attention_weight = torch.softmax(attention_score, dim=-1)

        output = attention_weight @ v
        output = output.transpose(1, 2).contiguous().view(batch_size, seq, -1)
        return self.o_proj(output)
