# style: -inf replaced by the dtype's minimum, hidden entries multiplied away, Chinese comments
import torch


def softmax(x, dim):
    # 先记住哪些位置是负无穷
    shown = x != float("-inf")
    # 用该类型的最小值代替，避免 NaN
    filled = x.masked_fill(~shown, torch.finfo(x.dtype).min)
    top = filled.max(dim, keepdim=True)[0]
    weights = (filled - top).exp() * shown  # 归一化之前去掉
    return weights / weights.sum(dim, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
