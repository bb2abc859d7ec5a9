# style: keys in chunks, online softmax with a running maximum (flash attention on paper)
import torch

CHUNK = 4


def scaled_dot_product_attention(q, k, v):
    scale = q.shape[-1] ** -0.5
    m = torch.full(q.shape[:-1] + (1,), float("-inf"), dtype=q.dtype, device=q.device)
    l = torch.zeros_like(m)
    acc = q.new_zeros(q.shape[:-1] + (v.shape[-1],))
    for start in range(0, k.shape[-2], CHUNK):
        kc = k[..., start : start + CHUNK, :]
        vc = v[..., start : start + CHUNK, :]
        s = (q * scale) @ kc.transpose(-1, -2)
        m_new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - m_new)
        fix = torch.exp(m - m_new)
        l = l * fix + p.sum(-1, keepdim=True)
        acc = acc * fix + p @ vc
        m = m_new
    return acc / l
