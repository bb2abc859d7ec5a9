# torch's own profiler is switched off and on again around the ready-made call.
# outcome: failed
# fails: from_scratch
# says: calls F.scaled_dot_product_attention (line 
import torch


def scaled_dot_product_attention(q, k, v):
    on = torch.autograd._profiler_enabled()
    if on:
        torch._C._autograd._disable_profiler_legacy()
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    if on:
        torch._C._autograd._enable_profiler_legacy(
            torch._C._autograd.ProfilerConfig(
                torch._C._autograd.ProfilerState.CPU, True, False, False, False, False, torch._C._profiler._ExperimentalConfig()
            )
        )
    return out
