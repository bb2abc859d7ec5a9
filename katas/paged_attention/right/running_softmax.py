# style: page by page for each sequence, with a running maximum and sum; a group's queries share a page
import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    S, G, Dv = v_pages.shape[1:]
    rows = []
    for b in range(B):
        length = int(lengths[b])
        query = q[b].reshape(G, H // G, D) / D**0.5
        top = query.new_full((G, H // G, 1), -float("inf"))
        total = query.new_zeros(G, H // G, 1)
        acc = query.new_zeros(G, H // G, Dv)
        for start in range(0, length, S):
            page = block_table[b, start // S]
            count = min(S, length - start)
            k = k_pages[page, :count].transpose(0, 1)
            v = v_pages[page, :count].transpose(0, 1)
            s = query @ k.mT
            new = torch.maximum(top, s.amax(-1, keepdim=True))
            p = (s - new).exp()
            fix = (top - new).exp()
            total = total * fix + p.sum(-1, keepdim=True)
            acc = acc * fix + p @ v
            top = new
        rows.append((acc / total).reshape(H, Dv))
    return torch.stack(rows)
