"""softmax as a pipeline, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn

INF = float("inf")


def begin(x, dim):
    return State(x=x, dim=dim, maximum_dim=dim, sum_dim=dim)


def probe(x, dim):
    names = ("B", "T", "N")[-x.dim() :]
    return Probe(args=(x, dim), sizes=dict(zip(names, x.shape, strict=True)))


def probes():
    x = randn(2, 3, 5)
    apart = x + 1e4 * (torch.arange(3) - 1)[:, None]  # the rows near -1e4, 0 and 1e4
    hidden = torch.where(torch.arange(15).reshape(3, 5) % 4 == 1, -INF, x)
    hidden[1, 2] = -INF  # this row throughout
    square = randn(4, 4) + 1e4 * (torch.arange(4) % 3 - 1)[:, None]
    square[1] = -INF
    return [
        probe(x, -1),
        probe(x, 1),
        probe(randn(3, 3, 3), 1),  # all alike: what has lost a dimension raises nowhere
        probe(randn(3, 3, 3), 2),
        probe(randn(2, 4), 0),
        probe(apart, -1),
        probe(apart.transpose(1, 2).contiguous(), 1),
        probe(hidden, -1),
        probe(square, 1),
    ]


# ---------------------------------------------------------------------------------------- which dimension is reduced


def every_dim_is(fixed):
    """Every reduction along one dimension, whatever dim says."""

    def wrong(state: State) -> None:
        state.maximum_dim = state.sum_dim = fixed

    return wrong


def maximum_dim_is(fixed):
    """The maximum along one dimension, whatever dim says."""

    def wrong(state: State) -> None:
        state.maximum_dim = fixed

    return wrong


def sum_dim_is(fixed):
    """The sum along one dimension, whatever dim says."""

    def wrong(state: State) -> None:
        state.sum_dim = fixed

    return wrong


# ------------------------------------------------------------------------------------------------ what is taken off


def shift(state: State) -> None:
    """x less the maximum of its slice, which is 0 where the slice is -inf throughout."""
    largest = state.x.amax(dim=state.maximum_dim, keepdim=True)
    state.exponents = state.x - largest.masked_fill(largest == -INF, 0.0)


def shift_unguarded(state: State) -> None:
    """x less the maximum of its slice: NaN where that is -inf."""
    state.exponents = state.x - state.x.amax(dim=state.maximum_dim, keepdim=True)


def shift_by_whole_tensor(state: State) -> None:
    """x less the maximum of the whole tensor."""
    state.exponents = state.x - state.x.max()


def shift_upside_down(state: State) -> None:
    """The maximum less x."""
    shift(state)
    state.exponents = -state.exponents


def shift_missing(state: State) -> None:
    """x as it is."""
    state.exponents = state.x


def negated(state: State) -> None:
    """-x."""
    state.exponents = -state.x


def cut_off(bound):
    """x between -bound and bound."""

    def wrong(state: State) -> None:
        state.exponents = state.x.clamp(-bound, bound)

    return wrong


def cut_off_above(bound):
    """x, at most bound."""

    def wrong(state: State) -> None:
        state.exponents = state.x.clamp(max=bound)

    return wrong


def shift_without_keepdim(state: State) -> None:
    """x less a maximum that has lost the dimension it was taken along."""
    largest = state.x.amax(dim=state.maximum_dim)
    state.exponents = state.x - largest.masked_fill(largest == -INF, 0.0)


# ------------------------------------------------------------------------------------------------- sum and division


def total(state: State) -> None:
    """exp, and its sum along dim."""
    state.exps = state.exponents.exp()
    state.total = state.exps.sum(dim=state.sum_dim, keepdim=True)


def total_of_whole_tensor(state: State) -> None:
    """exp, and its sum over everything."""
    state.exps = state.exponents.exp()
    state.total = state.exps.sum()


def total_without_keepdim(state: State) -> None:
    """exp, and its sum without the dimension that was summed."""
    state.exps = state.exponents.exp()
    state.total = state.exps.sum(dim=state.sum_dim)


def divide(state: State) -> None:
    """Each slice by its sum; 0 where the slice is -inf throughout."""
    empty = (state.x == -INF).all(dim=state.dim, keepdim=True)
    state.out = (state.exps / state.total).masked_fill(empty, 0.0)


def divide_where_not_zero(state: State) -> None:
    """Each slice by its sum, and 0 wherever the sum is 0."""
    state.out = (state.exps / state.total).masked_fill(state.total == 0, 0.0)


def divide_clamped(state: State) -> None:
    """Each slice by its sum, or by the smallest number of the dtype where the sum is less."""
    state.out = state.exps / state.total.clamp_min(torch.finfo(state.total.dtype).tiny)


def divide_and_hide_nan(state: State) -> None:
    """Each slice by its sum, and 0 for every NaN."""
    state.out = (state.exps / state.total).nan_to_num(nan=0.0)


def divide_unguarded(state: State) -> None:
    """Each slice by its sum."""
    state.out = state.exps / state.total


def equal_where_empty(state: State) -> None:
    """Each slice by its sum; equal results where it is -inf throughout, as a fill with a finite number leaves."""
    empty = (state.x == -INF).all(dim=state.dim, keepdim=True)
    state.out = torch.where(empty, 1.0 / state.x.shape[state.dim], state.exps / state.total)


def divide_not(state: State) -> None:
    """The exponentials as they are."""
    state.out = state.exps


def logarithm_of(divided):
    """log of the softmax, as `divided` leaves slices that are -inf throughout."""

    def wrong(state: State) -> None:
        divided(state)
        state.out = state.out.log()

    return wrong


def sigmoid(state: State) -> None:
    """Every entry on its own."""
    state.out = state.x.sigmoid()


def softmax_again(state: State) -> None:
    """The softmax of the softmax."""
    divide(state)
    state.out = state.out.softmax(dim=state.dim)


PIPELINES = (
    Pipeline(
        entry="softmax",
        begin=begin,
        stages={"dims": s.nothing, "shift": shift, "total": total, "divide": divide},
        variants=(
            *variants(
                "softmax.dim_ignored",
                *(
                    {"dims": which(fixed)}
                    for fixed in (-1, 0, 1)
                    for which in (every_dim_is, maximum_dim_is, sum_dim_is)
                ),
                *({"dims": maximum_dim_is(fixed), "divide": divide_where_not_zero} for fixed in (-1, 0, 1)),
            ),
            *variants(
                "numerics.no_max",
                {"shift": shift_missing},
                {"shift": shift_missing, "divide": divide_where_not_zero},
                {"shift": shift_missing, "divide": divide_and_hide_nan},
            ),
            *variants(
                "numerics.global_max",
                {"shift": shift_by_whole_tensor},
                {"shift": shift_by_whole_tensor, "divide": divide_where_not_zero},
                {"shift": shift_by_whole_tensor, "divide": divide_and_hide_nan},
            ),
            *variants(
                "numerics.clamped",
                *({"shift": cut_off(bound)} for bound in (20, 30, 50, 80, 88, 100, 500, 700)),
                *({"shift": cut_off_above(bound)} for bound in (50, 80, 88, 100)),
            ),
            *variants(
                "softmax.negated",
                {"shift": shift_upside_down},
                {"shift": negated},
                {"shift": shift_upside_down, "divide": divide_unguarded},
            ),
            *variants("softmax.whole_tensor", {"total": total_of_whole_tensor}),
            *variants(
                "softmax.keepdim",
                {"total": total_without_keepdim},
                {"shift": shift_without_keepdim},
                {"total": total_without_keepdim, "divide": divide_where_not_zero},
                {"total": total_without_keepdim, "divide": divide_clamped},
            ),
            *variants(
                "softmax.empty_slice",
                {"shift": shift_unguarded, "divide": divide_unguarded},
                {"divide": divide_unguarded},
                {"divide": equal_where_empty},
            ),
            *variants("softmax.not_normalised", {"divide": divide_not}),
            *variants(
                "softmax.log",
                *({"divide": logarithm_of(way)} for way in (divide, divide_unguarded, equal_where_empty)),
            ),
            *variants("softmax.sigmoid", {"divide": sigmoid}),
            *variants("softmax.twice", {"divide": softmax_again}),
        ),
        probes=probes,
    ),
)
