# style: as the first tests of vLLM computed it: token by token, page and slot of each; head by head
import math

import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    H, D = q.shape[1:]
    S, G = k_pages.shape[1], k_pages.shape[2]
    result = []
    for b in range(len(q)):
        keys, values = [], []
        for t in range(int(lengths[b])):
            page, slot = int(block_table[b, t // S]), t % S
            keys.append(k_pages[page, slot])
            values.append(v_pages[page, slot])
        keys, values = torch.stack(keys), torch.stack(values)
        heads = []
        for h in range(H):
            g = h // (H // G)
            weights = torch.softmax(keys[:, g] @ q[b, h] / math.sqrt(D), dim=0)
            heads.append(weights @ values[:, g])
        result.append(torch.stack(heads))
    return torch.stack(result)
