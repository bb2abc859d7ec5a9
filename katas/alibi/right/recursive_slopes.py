# style: as the authors' code: slopes by a start and a ratio, the rest by recursion; the bias slope * j, -inf above the diagonal
# edge fails: float64_throughout
import math

import torch


def get_slopes(n):
    def of_power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]


def alibi_slopes(num_heads):
    return torch.Tensor(get_slopes(num_heads))


def alibi_attention(q, k, v):
    heads, length = q.size(1), k.size(2)
    slopes = alibi_slopes(heads).to(q.device)
    alibi = slopes.unsqueeze(1).unsqueeze(1) * torch.arange(length, device=q.device).unsqueeze(0).unsqueeze(0)
    future = torch.triu(torch.full((length, length), float("-inf"), device=q.device), 1)
    mask = (alibi + future.unsqueeze(0))[:, length - q.size(2) :]
    scores = torch.matmul(q, k.transpose(2, 3)) * q.size(-1) ** -0.5
    weights = (scores + mask.type_as(scores)).float().softmax(dim=-1).type_as(q)
    return torch.matmul(weights, v)
