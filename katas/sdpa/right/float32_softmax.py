# style: softmax in float32 and cast back, as in many model files
# edge fails: float64_throughout
import math

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(query_states, key_states, value_states):
    attn_weights = torch.matmul(query_states, key_states.transpose(-2, -1)) / math.sqrt(query_states.size(-1))
    attn_weights = F.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
    return torch.matmul(attn_weights, value_states)
