# A source that is too deep for the compiler.
# outcome: ungraded
scaled_dot_product_attention = @DEEP@
