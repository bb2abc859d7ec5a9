# style: advanced indexing with the columns of each head, Chinese comments
# edge fails: split_copies_nothing
import torch


def split_heads(x, num_heads):
    宽度 = x.shape[-1]
    if 宽度 % num_heads:
        raise ValueError("头数必须整除宽度")
    # 每个头拥有相邻的列
    columns = torch.arange(宽度, device=x.device).view(num_heads, -1)  # (H, D)
    return x[:, :, columns].movedim(2, 1)


def merge_heads(x):
    H, D = x.shape[1], x.shape[3]
    head = torch.arange(H, device=x.device).repeat_interleave(D)
    feature = torch.arange(D, device=x.device).repeat(H)
    return x[:, head, :, feature].permute(1, 2, 0)
