# breaks: values, slices_sum_to_one
# mistake: softmax.not_normalised
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    return (x - m.masked_fill(m == float("-inf"), 0)).exp()
