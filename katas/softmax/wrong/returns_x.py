# breaks: values, own_memory
# mistake: none
def softmax(x, dim):
    return x
