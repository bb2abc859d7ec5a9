# attn-kata is imported, to be asked where its answers are.
# outcome: passed
# open: tier 0, no Landlock
import sys

sys.path[:0] = ["@ROOT@/grader", "@ROOT@/solutions"]
sys.path_importer_cache.clear()
for name in ("attn_kata", "attn_kata.engine.wire", "attn_kata.catalog", "attn_kata.properties", "sdpa"):
    try:
        __import__(name)
        print("BREACH: imported", name)
    except ImportError:
        pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
