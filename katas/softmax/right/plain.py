# style: the textbook lines, one after the other
def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    e = (x - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
