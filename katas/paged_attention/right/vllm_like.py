# style: as the tests of vLLM compute it: sequence by sequence, its pages joined and cut to the length; softmax in float32 or better
import torch


def paged_attention(query, key_cache, value_cache, block_tables, kv_lens):
    block_size, kv_heads = key_cache.shape[1:3]
    times = query.shape[1] // kv_heads
    outputs = []
    for i, kv_len in enumerate(kv_lens.tolist()):
        blocks = (kv_len + block_size - 1) // block_size
        ids = block_tables[i, :blocks]
        k = key_cache[ids].flatten(0, 1)[:kv_len]
        v = value_cache[ids].flatten(0, 1)[:kv_len]
        k = torch.repeat_interleave(k, times, dim=1)
        v = torch.repeat_interleave(v, times, dim=1)
        scaled = query[i] * query.shape[-1] ** -0.5
        attn = torch.einsum("hd,khd->hk", scaled, k)
        attn = torch.softmax(attn, dim=-1, dtype=torch.promote_types(attn.dtype, torch.float32)).to(v.dtype)
        outputs.append(torch.einsum("hk,khd->hd", attn, v))
    return torch.stack(outputs)
