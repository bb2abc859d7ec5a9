# 面试手写：多头自注意力
import math

import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, hidden_size, head_num):
        super().__init__()
        assert hidden_size % head_num == 0
        self.head_num = head_num
        self.head_dim = hidden_size // head_num  # 每个头的维度
        self.linear_q = nn.Linear(hidden_size, hidden_size)
        self.linear_k = nn.Linear(hidden_size, hidden_size)
        self.linear_v = nn.Linear(hidden_size, hidden_size)
        self.linear_o = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_state, attention_mask=None):
        # attention_mask：1 表示可以看到，0 表示被遮住
        batch_size, seq_len, _ = hidden_state.shape

        # 线性变换
        query = self.linear_q(hidden_state)
        key = self.linear_k(hidden_state)
        value = self.linear_v(hidden_state)

        # 拆成多个头
        query = self.split_head(query)
        key = self.split_head(key)
        value = self.split_head(value)

        # 计算注意力分数
        attention_scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            attention_scores = attention_scores.masked_fill(attention_mask == 0, float("-inf"))
        attention_probs = torch.softmax(attention_scores, dim=-1)

        output = torch.matmul(attention_probs, value)
        # 合并所有的头
        output = output.transpose(1, 2).contiguous().view(batch_size, seq_len, -1)
        return self.linear_o(output)

    def split_head(self, x):
        batch_size = x.size(0)
        return x.view(batch_size, -1, self.head_num, self.head_dim).transpose(1, 2)
