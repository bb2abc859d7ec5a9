# breaks: values
# mistake: none
def softmax(x, dim):
    return x / x.sum(dim, keepdim=True)
