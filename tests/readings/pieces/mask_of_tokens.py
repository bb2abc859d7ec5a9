"""A mask from a batch of token numbers, of which it only takes the shape. True: a later token, hidden."""

import torch


def future_mask(tokens):
    batch, length = tokens.shape
    later = torch.ones(length, length, device=tokens.device).triu(diagonal=1)
    return later.expand(batch, length, length).bool()
