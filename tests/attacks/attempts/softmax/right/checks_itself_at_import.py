# A self-check at import compares with the ready-made softmax.
# outcome: passed
import torch


def softmax(x, dim):
    highest = x.amax(dim, keepdim=True).nan_to_num(neginf=0.0)
    raised = (x - highest).exp()
    total = raised.sum(dim, keepdim=True)
    return raised / torch.where(total == 0, 1.0, total)


x = torch.randn(3, 4)
assert torch.allclose(softmax(x, 1), torch.softmax(x, 1), atol=1e-6)
assert torch.allclose(softmax(x, 0), torch.nn.functional.softmax(x, dim=0), atol=1e-6)
