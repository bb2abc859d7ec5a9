# breaks: output_shape
# mistake: none
def softmax(x, dim):
    top = x.amax(dim, keepdim=True)
    e = (x - top).exp()
    return e / e.sum(dim, keepdim=True), top
