# An expression that costs the compiler gigabytes.
# outcome: ungraded
scaled_dot_product_attention = -1 << 40 << 40; huge = "x" * (1 << 36)
