# style: all sequences at once, column by column of the table; each page gives a result and a log-sum, merged at the end
# edge fails: nan_past_a_length
import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    S, G = k_pages.shape[1], k_pages.shape[2]
    q = q.unflatten(1, (G, H // G)) * D**-0.5
    outs, sums = [], []
    for m, column in enumerate(block_table.clamp(min=0).unbind(1)):
        k, v = k_pages[column].transpose(1, 2), v_pages[column].transpose(1, 2)
        held = m * S + torch.arange(S, device=q.device) < lengths[:, None]
        s = (q @ k.mT).masked_fill(~held[:, None, None], float("-inf"))
        sums.append(s.logsumexp(-1))
        some = held.any(-1)[:, None, None, None]
        outs.append(s.masked_fill(~some, 0.0).softmax(-1) @ v)
    share = torch.stack(sums).softmax(0)[..., None]
    return (torch.stack(outs) * share).sum(0).flatten(1, 2)
