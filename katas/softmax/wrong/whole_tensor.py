# breaks: values, slices_sum_to_one, slices_are_independent
# mistake: softmax.whole_tensor
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    e = (x - m.masked_fill(m == float("-inf"), 0)).exp()
    return e / torch.sum(e).clamp_min(1e-30)
