# A reentrant checkpoint computes the weights again for the gradients.
# outcome: passed
from torch.utils.checkpoint import checkpoint


def attend(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def scaled_dot_product_attention(q, k, v):
    return checkpoint(attend, q, k, v, use_reentrant=True)
