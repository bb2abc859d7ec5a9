# style: batch and heads folded, a class for the running state, float32 sums for half precision
# edge fails: float64_throughout, future_skipped
import torch


class Running:
    def __init__(self, queries, width):
        self.top = queries.new_full(queries.shape[:2], float("-inf"), dtype=torch.float32)
        self.sum = torch.zeros_like(self.top)
        self.acc = queries.new_zeros(*queries.shape[:2], width, dtype=torch.float32)

    def add(self, scores, values):
        top = torch.max(self.top, scores.max(dim=-1)[0])
        old = torch.exp(self.top - top)
        new = torch.exp(scores - top.unsqueeze(-1))
        self.sum = self.sum * old + new.sum(-1)
        self.acc = torch.baddbmm(self.acc * old.unsqueeze(-1), new, values)
        self.top = top


def flash_attention(q, k, v, block_q, block_k, causal=False):
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    qf, kf, vf = (part.reshape(B * H, part.shape[2], part.shape[3]).float() for part in (q, k, v))
    out, lse = [], []
    for i in range(0, Tq, block_q):
        queries = qf[:, i : i + block_q]
        running = Running(queries, v.shape[-1])
        for j in range(0, Tk, block_k):
            scores = torch.bmm(queries, kf[:, j : j + block_k].transpose(1, 2)) / D**0.5
            if causal:
                row = torch.arange(queries.shape[1], device=q.device) + i + Tk - Tq
                column = torch.arange(scores.shape[2], device=q.device) + j
                scores = scores.masked_fill(column[None] > row[:, None], float("-inf"))
            running.add(scores, vf[:, j : j + block_k])
        out.append(running.acc / running.sum.unsqueeze(-1))
        lse.append(running.top + running.sum.log())
    return torch.cat(out, 1).view(B, H, Tq, -1).to(q.dtype), torch.cat(lse, 1).view(B, H, Tq).to(q.dtype)
