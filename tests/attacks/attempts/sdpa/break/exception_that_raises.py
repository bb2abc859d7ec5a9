# An exception whose __str__ raises.
# outcome: failed
# says: its message could not be read
class Broken(Exception):
    def __str__(self):
        raise KeyError("no")

    __repr__ = __str__


def scaled_dot_product_attention(q, k, v):
    raise Broken
