# breaks: values, slices_sum_to_one
# mistake: softmax.log
import torch


def softmax(x, dim):
    out = x - torch.logsumexp(x, dim, keepdim=True)
    return torch.where(torch.isnan(out), torch.full_like(out, float("-inf")), out)
