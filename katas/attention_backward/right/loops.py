# style: a loop over samples and heads with small matrices; saved is one long flat list
# edge fails: saved_is_small
import torch


def attention_forward(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    if mask is not None:
        mask = torch.broadcast_to(mask, (B, H, Tq, Tk))
    out = torch.empty(B, H, Tq, v.shape[3], dtype=q.dtype, device=q.device)
    weights = torch.empty(B, H, Tq, Tk, dtype=q.dtype, device=q.device)
    for b in range(B):
        for h in range(H):
            scores = q[b, h] @ k[b, h].T * D**-0.5
            if mask is not None:
                scores[~mask[b, h]] = float("-inf")
            weights[b, h] = scores.softmax(1)
            out[b, h] = weights[b, h] @ v[b, h]
    return out, [weights, q.clone(), k.clone(), v.clone(), D, None]


def attention_backward(grad_out, saved):
    weights, q, k, v, D, _ = saved
    grads = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            w, g = weights[b, h], grad_out[b, h]
            grads[2][b, h] = w.T @ g
            d = g @ v[b, h].T
            d = w * (d - (d * w).sum(1)[:, None]) * D**-0.5
            grads[0][b, h] = d @ k[b, h]
            grads[1][b, h] = d.T @ q[b, h]
    return grads
