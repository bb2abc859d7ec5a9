# style: -inf replaced by -1e9, prints, code under __main__
# edge fails: half_precision
import torch


def softmax(tensor, axis):
    print("softmax of", tuple(tensor.shape), "along", axis)
    hidden = tensor == -float("inf")
    tensor = tensor.masked_fill(hidden, -1e9)
    tensor = tensor - tensor.max(axis, keepdim=True)[0]
    e = tensor.exp()
    return (e / e.sum(axis, keepdim=True)).masked_fill(hidden, 0)


if __name__ == "__main__":
    print(softmax(torch.randn(2, 3), -1))
