"""Attention weights computed from an attempt's output, shown beside the right ones.

If the values are the unit vectors, the output is the weight matrix: out = weights I.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.properties.compare import matrix
from attn_kata.properties.failures import AttemptDied, PropertyFailed
from attn_kata.properties.handle import Handle, Module, Target
from attn_kata.report.model import Example

SEED = 104729
ROUNDING = 1e-6
NOT_WEIGHTS = "what reaches the output"  # where an attempt's output shows no weights
OUTPUT, OF_OUTPUT = "the output", "column"  # where not even the right one does: the values cannot be unit vectors


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One call, and a function `read` that makes a matrix to show of its output: (rows, columns), at most 8 by 8."""

    entry: str
    what: str
    read: Callable[[Tensor], Tensor]
    args: tuple[Any, ...]
    build: tuple[Any, ...] = ()
    parameters: dict[str, Tensor] = field(default_factory=dict)
    rows: str = "query"
    columns: str = "key"
    numbered: bool = False  # the numbers are places: shown only if each of them is a valid place
    of_weights: bool = True  # the numbers are weights; where an attempt's are not, the picture says so
    ask: Callable[..., Tensor] | None = (
        None  # for a module that is called several times: `ask(module, *args)` gives the output
    )


def of_function(entry: str, args: tuple[Any, ...], *, what: str = "the weights") -> Picture:
    """The weights of the first sample and head of a function whose third argument is v; v becomes unit vectors."""
    q, k, v, *rest = args
    unit = torch.eye(k.shape[-2], dtype=v.dtype).expand(*v.shape[:-1], k.shape[-2]).contiguous()
    return Picture(entry=entry, what=what, read=_first, args=(q, k, unit, *rest))


def of_tiles(entry: str, args: tuple[Any, ...], *, block_q: int, block_k: int) -> Picture:
    """Which share of the pairs of query and key of each tile reaches the output of a function whose third argument is v.

    A tile that is not computed, or whose result is lost, has 0. `args` are those of the call; v becomes unit vectors.
    """
    weights = of_function(entry, args)
    lengths = args[0].shape[-2], args[1].shape[-2]

    def read(out: Tensor) -> Tensor:
        found = _first(out)
        # Queries that no block has are missing at the end.
        whole = torch.nn.functional.pad(found, (0, 0, 0, lengths[0] - found.shape[0]))
        if whole.shape != lengths:
            raise IndexError("the output has no row for each query")
        reached = torch.where(whole.isnan(), whole, (whole.abs() > ROUNDING).to(whole.dtype))
        return torch.stack(
            [torch.stack([tile.mean() for tile in row.split(block_k, 1)]) for row in reached.split(block_q)]
        )

    return replace(
        weights,
        what="tiles: the share of query-key pairs that reach the output",
        read=read,
        rows=f"block of {block_q} queries",
        columns=f"key block of {block_k}",
        of_weights=False,
    )


def _first(out: Tensor) -> Tensor:
    return out.reshape(-1, *out.shape[-2:])[0]


def draw(pictures: tuple[Picture, ...], attempt: Handle, reference: Handle) -> list[Example]:
    """Each picture of the attempt and the reference; left out if both are equal or the attempt gives no result."""
    drawn = []
    for picture in pictures:
        try:
            right = picture.read(_ask(picture, reference))
            got = picture.read(_ask(picture, attempt).to(torch.float64))
        except (PropertyFailed, AttemptDied, RuntimeError, IndexError):
            continue
        if picture.numbered:
            if not bool((((got - got.round()).abs() <= 1e-6) & torch.isin(got.round(), right)).all()):
                continue  # a mixture of numbers has no single place
            got = got.round()
        if got.shape == right.shape and not torch.allclose(got, right, atol=1e-6, rtol=0):
            what, columns = picture.what, picture.columns
            if picture.of_weights and not picture.numbered and not _are_weights(right):
                what, columns = OUTPUT, OF_OUTPUT
            elif picture.of_weights and not picture.numbered and not _are_weights(got):
                what = NOT_WEIGHTS
            drawn.append(
                Example(what=what, rows=picture.rows, columns=columns, expected=matrix(right), got=matrix(got))
            )
    return drawn


def _are_weights(got: Tensor) -> bool:
    """Whether these can be the weights of queries (rows): from 0 to 1, and together at most 1. Empty rows may be NaN."""
    rows = got[~got.isnan().all(dim=-1)]
    return bool(((rows >= -ROUNDING) & (rows <= 1 + ROUNDING)).all() and (rows.sum(dim=-1) <= 1 + ROUNDING).all())


def _ask(picture: Picture, handle: Handle) -> Tensor:
    target: Target = getattr(handle, picture.entry)
    if picture.parameters:
        module: Module = getattr(handle, picture.entry)(*picture.build)
        module.load(picture.parameters)
        if picture.ask is not None:
            return picture.ask(module._with({"training": False, "lenient_views": True}), *picture.args)
        return module.run(*picture.args, training=False, lenient_views=True).output
    return target.run(*picture.args, lenient_views=True).output


def of_heads(
    entry: str,
    build: tuple[Any, ...],
    *,
    heads: int,
    head_dim: int,
    length: int,
    mask: Tensor | None,
    fused: str | None = None,
    output: str | None = "o_proj",
    context: bool = False,
    queries: int | None = None,
) -> Picture:
    """The weights of the first head of a module, computed from its output.

    The input is random numbers followed by a one-hot code of the position, (1, T, R + T). Queries and keys are random maps of
    the numbers, the values of each head are the code, and the output projection is the identity; it needs head_dim >= T.
    `fused` names a projection with q, k and v; `context` means that keys and values have their own input, with `queries`
    queries.
    """
    width = heads * head_dim
    numbers = width - length
    generator = torch.Generator().manual_seed(SEED)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def coded(count: int) -> Tensor:
        code = torch.eye(count, length, dtype=torch.float64)
        return torch.cat([random(1, count, numbers), code[None]], dim=-1)  # (1, T, E)

    look = torch.zeros(2, width, width, dtype=torch.float64)
    look[:, :, :numbers] = random(2, width, numbers) * 1.2 / numbers**0.5
    values = torch.zeros(width, width, dtype=torch.float64)
    for head in range(heads):
        for position in range(length):
            values[head * head_dim + position, numbers + position] = 1.0
    nothing = torch.zeros(width, dtype=torch.float64)
    if fused is not None:
        bias = torch.zeros(3 * width, dtype=torch.float64)
        parameters = {f"{fused}.weight": torch.cat([*look, values]), f"{fused}.bias": bias}
    else:
        parameters = {
            "q_proj.weight": look[0],
            "k_proj.weight": look[1],
            "v_proj.weight": values,
            **{f"{name}.bias": nothing for name in ("q_proj", "k_proj", "v_proj")},
        }
    if output is not None:
        parameters[f"{output}.weight"] = torch.eye(width, dtype=torch.float64)
        parameters[f"{output}.bias"] = nothing
    inputs = (coded(queries or length), coded(length)) if context else (coded(length),)
    args = inputs if mask is None else (*inputs, mask)
    return Picture(
        entry=entry,
        what="the weights of the first head",
        read=lambda out: out[0, :, :length],
        args=args,
        build=build,
        parameters=parameters,
    )


def of_layout(
    entry: str,
    build: tuple[Any, ...],
    *,
    heads: int,
    head_dim: int,
    length: int,
    fused: str | None = None,
    output: str | None = "o_proj",
    context: bool = False,
) -> Picture:
    """Where each number of the value projection ends up in the merged heads of a module.

    Token t's value in column c of head h is the number 100 t + 10 h + c, every token attends to itself only, and the output
    projection is the identity: the output shows how the numbers were split and merged. Every size is below 10. `context`
    means that keys and values have their own input, with a padding mask: sample t then keeps only its key t.
    """
    width = heads * head_dim
    number = torch.tensor(
        [10.0 * (column // head_dim) + column % head_dim for column in range(width)], dtype=torch.float64
    )
    nothing = torch.zeros(width, width, dtype=torch.float64)
    values = nothing.clone()
    values[:, 0], values[:, 1] = number, 100.0  # x is (1, t, 0, ...)
    tokens = torch.zeros(1, length, width, dtype=torch.float64)
    tokens[0, :, 0], tokens[0, :, 1] = 1.0, torch.arange(length, dtype=torch.float64)
    bias = torch.zeros(width, dtype=torch.float64)
    if fused is not None:
        parameters = {f"{fused}.weight": torch.cat([nothing, nothing, values]), f"{fused}.bias": bias.repeat(3)}
    else:
        parameters = {
            "q_proj.weight": nothing,
            "k_proj.weight": nothing,
            "v_proj.weight": values,
            **{f"{name}.bias": bias for name in ("q_proj", "k_proj", "v_proj")},
        }
    if output is not None:
        parameters[f"{output}.weight"] = torch.eye(width, dtype=torch.float64)
        parameters[f"{output}.bias"] = bias
    keep = torch.eye(length, dtype=torch.bool)
    samples = tokens.expand(length, length, width).contiguous()
    args = (samples[:, :1].contiguous(), samples, keep) if context else (tokens, keep)
    return Picture(
        entry=entry,
        what="token, head, column of the value that ends here, as three digits",
        args=args,
        build=build,
        read=lambda out: out[:, 0] if context else out[0],
        parameters=parameters,
        rows="token",
        columns="column of the merged heads",
        numbered=True,
    )
