# The default dtype, the threads and the deterministic switch are changed globally.
# outcome: passed
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(2)
torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=1)


def scaled_dot_product_attention(q, k, v):
    torch.set_default_dtype(torch.float16 if torch.get_default_dtype() == torch.float64 else torch.float64)
    torch.manual_seed(0)
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
