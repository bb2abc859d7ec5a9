# style: exp(x - logsumexp), with logsumexp guarded where a slice is empty
import torch


def softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    empty = torch.isneginf(x).all(dim=dim, keepdim=True)
    safe = torch.where(empty, torch.zeros((), dtype=x.dtype, device=x.device), x)
    log_total = torch.logsumexp(safe, dim=dim, keepdim=True)
    return torch.exp(safe - log_total) * ~empty
