"""Training a module of an attempt's: the steps are made here, and the attempt has its part in logits and gradients alone.

torch.optim's first use imports a second's worth of torch._dynamo, so Adam is written out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attn_kata.properties.handle import Module


def fit(
    module: Module, *args: Any, weights: dict[str, Tensor], labels: Tensor, steps: int, learning_rate: float
) -> tuple[dict[str, Tensor], list[float]]:
    """Train `module`, called with `args`, from `weights` by full-batch Adam on cross-entropy (Kingma and Ba, 2015).

    `labels` (N,) has a class for each row of the logits (N, classes). Returns the weights after the last step, by name, and
    the loss at each step. The module is left with the weights before the last step.
    """
    learnt = {name: weight.clone() for name, weight in weights.items()}
    moments = {name: (torch.zeros_like(weight), torch.zeros_like(weight)) for name, weight in weights.items()}
    losses = []
    for step in range(1, steps + 1):
        result = module.run(*args, weights=learnt, labels=labels, training=True)
        losses.append(float(cross_entropy(result.output, labels)))
        for name, gradient in result.parameter_gradients.items():
            if gradient is not None:
                _adam(learnt[name], gradient, *moments[name], step, learning_rate)
    return learnt, losses


def _adam(value: Tensor, gradient: Tensor, first: Tensor, second: Tensor, step: int, learning_rate: float) -> None:
    """One step, in place (Kingma and Ba, 2015)."""
    first.lerp_(gradient, 0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    root = (second / (1 - 0.999**step)).sqrt_().add_(1e-8)
    value.addcdiv_(first, root, value=-learning_rate / (1 - 0.9**step))
