# flex_attention is imported for a comparison of one's own, and never called.
# outcome: passed
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import flex_attention


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


if __name__ == "__main__":
    print(flex, flex_attention)
