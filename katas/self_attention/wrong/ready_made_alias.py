# breaks: from_scratch
# mistake: none
from torch import nn
from torch.nn import functional

attend = functional.scaled_dot_product_attention


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x)) + 0 * x[..., :1]
