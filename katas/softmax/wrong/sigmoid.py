# breaks: values, slices_sum_to_one
# mistake: softmax.sigmoid
def softmax(x, dim):
    return x.sigmoid()
