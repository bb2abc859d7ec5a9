# style: as masking functions of Hugging Face transformers: small rules of indices, joined by and / or, over a grid
# edge fails: half_precision
import torch


def causal_rule(q_idx, kv_idx):
    return kv_idx <= q_idx


def window_rule(window):
    return lambda q_idx, kv_idx: kv_idx > q_idx - window


def sink_rule(sinks):
    return lambda q_idx, kv_idx: kv_idx < sinks


def and_rules(*rules):
    def joined(q_idx, kv_idx):
        result = q_idx.new_ones((), dtype=torch.bool)
        for rule in rules:
            result = result & rule(q_idx, kv_idx)
        return result

    return joined


def or_rules(*rules):
    return lambda q_idx, kv_idx: ~and_rules(*(lambda a, b, rule=rule: ~rule(a, b) for rule in rules))(q_idx, kv_idx)


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    if not window >= 1 or not sinks >= 0:
        raise ValueError((window, sinks))
    rule = and_rules(causal_rule, or_rules(window_rule(window), sink_rule(sinks)))
    cache_position = torch.arange(num_keys - num_queries, num_keys, device=device)
    q_idx, kv_idx = torch.meshgrid(cache_position, torch.arange(num_keys, device=device), indexing="ij")
    return rule(q_idx, kv_idx)


def sliding_window_attention(q, k, v, window, sinks=0):
    mask = sliding_window_mask(q.shape[2], k.shape[2], window, sinks, q.device)
    weights = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    weights = torch.where(mask, weights, torch.full_like(weights, -1e9))
    return torch.matmul(weights.softmax(dim=-1), v)
