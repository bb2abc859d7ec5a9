# style: a helper class that remembers sizes, unflatten and movedim, a ValueError of one's own
class HeadsError(ValueError):
    pass


class Layout:
    def __init__(self, width, heads):
        self.heads = heads
        self.size = width // heads
        if self.size * heads != width:
            raise HeadsError(f"{heads} does not divide {width}")

    def split(self, x):
        return x.unflatten(2, (self.heads, self.size)).movedim(2, 1)

    def merge(self, x):
        return x.movedim(1, 2).flatten(2)


def split_heads(x, num_heads):
    return Layout(x.size(-1), num_heads).split(x)


def merge_heads(x):
    return Layout(x.size(1) * x.size(3), x.size(1)).merge(x)
