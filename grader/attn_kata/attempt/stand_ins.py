"""What stands for the helpers, layers and functions that public code takes from files and packages that are not here."""

from __future__ import annotations

import re
import types
from typing import Any

_OF_A_BASE = re.compile(r"(?:layer_?)?norm|ln|dropout|drop")


def softmax(scores: Any, dim: int = -1, **named: Any) -> Any:
    """torch's softmax; where no dimension is given, along the last one."""
    import torch

    return torch.softmax(scores, named.get("axis", dim))


def processor() -> Any:
    import torch

    return torch.device("cpu")


def aeq(*sizes: Any) -> None:
    """As OpenNMT's `aeq`: raises AssertionError where the sizes differ."""
    assert all(one == sizes[0] for one in sizes), f"Not all arguments have the same value: {sizes}"


def sequence_mask(lengths: Any, max_len: Any = None, *more: Any) -> Any:
    """As OpenNMT's `sequence_mask`: (B, max_len), True for the tokens. With x (B, T, …) before the lengths, the book's."""
    import torch

    if lengths.dim() > 1:
        return Book.sequence_mask(lengths, max_len, *more)
    tokens = torch.arange(int(max_len or lengths.max()), device=lengths.device)
    return tokens < lengths[:, None]


def exists(value: Any) -> bool:
    """As in code in the style of x-transformers."""
    return value is not None


def default(value: Any, otherwise: Any) -> Any:
    """As in code in the style of x-transformers; `otherwise` may be a function that makes it."""
    if value is not None:
        return value
    return otherwise() if isinstance(otherwise, types.FunctionType) else otherwise


def masked_softmax(scores: Any, keep: Any, dim: int = -1, **named: Any) -> Any:
    """As in the code that Stanford's CS224N hands out: (scores, mask, dim), 1 = may attend. With lengths, the book's."""
    import torch

    if keep is None or (keep.dim() < scores.dim() and not keep.is_floating_point() and keep.dtype != torch.bool):
        return Book.masked_softmax(scores, keep)
    keep = keep.to(scores.dtype)
    return torch.softmax(keep * scores + (1 - keep) * -1e30, dim)


class TriangularCausalMask:
    """As in the code of Informer (Zhou et al., 2021) and in what grew from it: `mask` (B, 1, L, L), True for later keys."""

    def __init__(self, batch: int, length: int, device: Any = None) -> None:
        import torch

        ones = torch.ones(batch, 1, length, length, dtype=torch.bool, device=device)
        self.mask = ones.triu(1)


class DropPath:
    """In the place of the layer that drops whole samples of a residual in training, or of the function: it drops nothing."""

    def __new__(cls, *given: Any, **named: Any) -> Any:
        import torch

        return given[0] if given and torch.is_tensor(given[0]) else torch.nn.Identity()


HELPERS = {
    "DropPath": DropPath,
    "TriangularCausalMask": TriangularCausalMask,
    "masked_softmax": masked_softmax,
    "aeq": aeq,
    "sequence_mask": sequence_mask,
    "exists": exists,
    "default": default,
}


def as_it_is(tensor: Any, *given: Any, **named: Any) -> Any:
    """In the place of what sets the first weights of a layer: the grading sets them anyway."""
    return tensor


def einsum_of_words(pattern: str, *operands: Any) -> Any:
    """torch.einsum with whole words for dimensions, "batch query head, batch key head -> batch query key"."""
    import torch

    letters: dict[str, str] = {}

    def letter(word: re.Match[str]) -> str:
        return letters.setdefault(word[0], chr(ord("a") + len(letters)))

    return torch.einsum(re.sub(r"\w+", letter, pattern).replace(" ", ""), *operands)


class Silent:
    """A logger: whatever it is told, it does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given, **named: None


class Book:
    """What code from Dive into Deep Learning (Zhang et al., 2021) takes from the book's own package."""

    @staticmethod
    def sequence_mask(x: Any, valid_len: Any, value: float = 0) -> Any:
        """x (N, T, …) with `value` from place valid_len (N,) on, in place."""
        import torch

        x[torch.arange(x.shape[1], device=x.device) >= valid_len[:, None]] = value
        return x

    @staticmethod
    def masked_softmax(scores: Any, valid_lens: Any) -> Any:
        """The softmax of scores (B, Tq, Tk) over the first valid_lens, (B,) or (B, Tq), keys."""
        import torch

        if valid_lens is not None:
            lengths = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
            hidden = torch.arange(scores.shape[-1], device=scores.device) >= lengths[..., None]  # (B, Tq or 1, Tk)
            scores = scores.masked_fill(hidden, -1e6)
        return scores.softmax(-1)

    @staticmethod
    def transpose_qkv(x: Any, num_heads: int) -> Any:
        """(B, T, H * D) to (B * H, T, D)."""
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)

    @staticmethod
    def transpose_output(x: Any, num_heads: int) -> Any:
        """(B * H, T, D) to (B, T, H * D)."""
        return x.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


def copies(*given: Any, **named: Any) -> Any:
    """As many copies of a module, in a list, whatever the parameters are called and in which order they come."""
    import copy

    from torch import nn

    values = [*given, *named.values()]
    module = next(one for one in values if isinstance(one, nn.Module))
    return nn.ModuleList([copy.deepcopy(module) for one in values if type(one) is int for _ in range(one)])


def layer_of_gpt2() -> type:
    """As `Conv1D` of transformers: a linear layer of nf features, whose weight is (nx, nf)."""
    import torch
    from torch import nn

    class Conv1D(nn.Module):
        def __init__(self, nf: int, nx: int) -> None:
            super().__init__()
            self.nf = nf
            self.weight = nn.Parameter(torch.empty(nx, nf).normal_(std=0.02))
            self.bias = nn.Parameter(torch.zeros(nf))

        def forward(self, x: Any) -> Any:
            return x @ self.weight + self.bias

    return Conv1D


def layer(name: str) -> Any:
    """The layer of torch.nn; a Softmax that is given scores is the function."""
    from torch import nn

    return Softmax if name == "Softmax" else getattr(nn, name)


class Softmax:
    """torch's softmax of scores, or the layer; along the last dimension where none is given."""

    def __new__(cls, *given: Any, **named: Any) -> Any:
        import torch

        if given and torch.is_tensor(given[0]):
            return softmax(*given, **named)
        return torch.nn.Softmax(*given, **named) if given or named else torch.nn.Softmax(dim=-1)


def says_nothing(*given: Any, **named: Any) -> Any:
    """In the place of what prints: it gives back what it is given first."""
    return given[0] if given else None


def module() -> type:
    """nn.Module."""
    from torch import nn

    return nn.Module


def base() -> type:
    """In the place of a base class: a module whose constructor takes anything, as those of training libraries do.

    A norm and a dropout that such a base makes for its classes change nothing.
    """
    from torch import nn

    class Base(nn.Module):
        def __getattr__(self, name: str) -> Any:
            return nn.Identity() if _OF_A_BASE.fullmatch(name) else super().__getattr__(name)

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__()

        def save_hyperparameters(self, *given: Any, **named: Any) -> None:
            """As a LightningModule has it."""

    return Base
