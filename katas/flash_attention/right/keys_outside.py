# style: the loop over keys outside, as in the first paper: results and statistics of all queries updated in place
# edge fails: gradients
import torch


@torch.no_grad()
def flash_attention(q, k, v, block_q, block_k, causal=False):
    Tq, Tk = q.size(2), k.size(2)
    out = q.new_zeros(*q.shape[:3], v.size(-1))
    total = q.new_zeros(*q.shape[:3])
    top = torch.full_like(total, -torch.inf)
    for j in range(0, Tk, block_k):
        keys, values = k.narrow(2, j, min(block_k, Tk - j)), v.narrow(2, j, min(block_k, Tk - j))
        for i in range(0, Tq, block_q):
            here = slice(i, min(i + block_q, Tq))
            if causal and j > here.stop - 1 + Tk - Tq:
                continue
            s = torch.einsum("bhid,bhjd->bhij", q[:, :, here], keys) * q.size(-1) ** -0.5
            if causal:
                row = torch.arange(here.start, here.stop, device=q.device) + (Tk - Tq)
                s[..., row[:, None] < torch.arange(j, j + keys.size(2), device=q.device)] = -torch.inf
            new = torch.maximum(top[:, :, here], s.amax(-1))
            factor = (top[:, :, here] - new).exp()
            p = (s - new.unsqueeze(-1)).exp()
            total[:, :, here] = total[:, :, here] * factor + p.sum(-1)
            out[:, :, here] = out[:, :, here] * factor.unsqueeze(-1) + p @ values
            top[:, :, here] = new
    out /= total.unsqueeze(-1)
    return [out, top + total.log()]
