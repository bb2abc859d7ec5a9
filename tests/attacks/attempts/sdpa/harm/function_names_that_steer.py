# A function whose name, and so the frame that the report names, is made of escape sequences.
# outcome: failed
def inner():
    raise ValueError("x")


steering = inner.__code__.replace(co_name="\x1b[2J\x1b]0;owned\x07\u202e<b>", co_filename=inner.__code__.co_filename)
inner.__code__ = steering


def scaled_dot_product_attention(q, k, v):
    inner()
