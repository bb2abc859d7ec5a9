"""attention_backward as two pipelines, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(q, k, v, mask=None):
    return State(q=q, k=k, v=v, keep=mask)


def inputs(B, H, Tq, Tk, D, Dv, masked):
    mask = (torch.rand(B, 1, Tq, Tk) < 0.6) | (torch.arange(Tk) == 0) if masked else None
    return randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv), mask


SIZES = ((2, 3, 5, 6, 7, 4, False), (2, 3, 5, 6, 7, 4, True), (2, 2, 4, 4, 4, 4, False), (2, 2, 4, 4, 3, 5, True))


def sizes_of(B, H, Tq, Tk, D, Dv, masked):
    return {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}


def probes():
    return [Probe(args=inputs(*sizes), sizes=sizes_of(*sizes)) for sizes in SIZES]


def backward_probes():
    made = []
    for sizes in SIZES:
        q, k, v, mask = inputs(*sizes)
        made.append(Probe(args=(q, k, v, mask, randn(*q.shape[:3], v.shape[-1])), sizes=sizes_of(*sizes)))
    return made


def give_saved(state):
    """What the reference saves."""
    lse = state.scores.logsumexp(-1)
    state.out = (state.out, (state.q, state.k, state.v, state.keep, state.out, lse))


def begin_backward(grad_out, saved):
    q, k, v, mask = saved[:4]
    return State(q=q, k=k, v=v, keep=mask, grad_out=grad_out)


def ask(target, q, k, v, mask, grad_out):
    _, saved = target.attention_forward(q, k, v, mask)
    return target.attention_backward(grad_out, saved)


def turned(value):
    return value.transpose(-2, -1)


def grad_v(state):
    state.grad_v = turned(state.weights) @ state.grad_out


def grad_v_not_transposed(state):
    state.grad_v = state.weights @ state.grad_out


def grad_v_of_scores(state):
    state.grad_v = turned(state.scores.masked_fill(state.scores == float("-inf"), 0.0)) @ state.grad_out


def grad_v_of_unmasked_scores(state):
    scores = state.q @ turned(state.k) * state.q.shape[-1] ** -0.5
    state.grad_v = turned(scores) @ state.grad_out


def grad_v_scaled(state):
    state.grad_v = turned(state.weights) @ state.grad_out * state.q.shape[-1] ** -0.5


def grad_v_of_ones(state):
    state.grad_v = turned(state.weights) @ torch.ones_like(state.grad_out)


def grad_weights(state):
    state.grad_weights = state.grad_out @ turned(state.v)


def grad_weights_of_ones(state):
    state.grad_weights = torch.ones_like(state.grad_out) @ turned(state.v)


def row(by):
    """The stage that makes what is subtracted from the gradient of the weights."""

    def stage(state):
        state.row = by(state.weights, state.grad_weights)

    return stage


def masked(state):
    return state.scores if state.keep is None else state.scores.masked_fill(~state.keep, float("-inf"))


def by_saved_total(state):
    """Weights of unmasked scores with the masked sum of the forward pass: masked keys get weights beside the others."""
    state.weights = (state.scores - masked(state).logsumexp(-1, keepdim=True)).exp()


def row_of_out(state):
    """What is subtracted, made of grad_out and the forward pass's out."""
    state.row = (state.grad_out * forward_out(state)).sum(-1, keepdim=True)


def forward_out(state):
    return masked(state).softmax(-1) @ state.v


def row_of_out_by(rule):
    """What is subtracted, made of grad_out times the forward pass's out, where it fits the weights' shape."""

    def stage(state):
        state.row = rule(state.grad_out * forward_out(state))
        if any(size not in (1, whole) for size, whole in zip(state.row.shape, state.weights.shape, strict=True)):
            raise RuntimeError("must match the size of tensor")

    return stage


def of_last_query(*names):
    """The stage that keeps only the last query's share of the gradients of keys or of values."""

    def stage(state):
        if "grad_v" in names:
            state.grad_v = turned(state.weights[..., -1:, :]) @ state.grad_out[..., -1:, :]
        if "grad_k" in names:
            state.grad_k = turned(state.of_k[..., -1:, :]) @ state.q[..., -1:, :]

    return stage


def through_softmax(state):
    state.grad_scores = state.weights * (state.grad_weights - state.row)


def elementwise(state):
    """As if every weight were a sigmoid of its own."""
    state.grad_scores = state.weights * (1 - state.weights) * state.grad_weights


def with_signs(grad, row):
    """The stage with other signs of the gradient of the weights and of what is subtracted."""

    def stage(state):
        state.grad_scores = state.weights * (grad * state.grad_weights + row * state.row)

    return stage


def without_weights(state):
    state.grad_scores = state.grad_weights - state.row


def factors(query, key, of="q"):
    """The stage that scales the gradients of q and of k: powers of 1 / sqrt(D), or of 1 / sqrt(Dv) with of="v"."""

    def stage(state):
        root = getattr(state, of).shape[-1] ** -0.5
        state.of_q, state.of_k = state.grad_scores * root**query, state.grad_scores * root**key

    return stage


def grad_q(state):
    state.grad_q = state.of_q @ state.k


def grad_k(state):
    state.grad_k = turned(state.of_k) @ state.q


def grad_k_not_transposed(state):
    state.grad_k = state.of_k @ state.q


def give(order):
    def stage(state):
        state.out = tuple(getattr(state, f"grad_{name}") for name in order)

    return stage


weighted = row(lambda weights, grad: (weights * grad).sum(-1, keepdim=True))

PIPELINES = (
    Pipeline(
        entry="attention_forward",
        begin=begin,
        stages={
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "mix": s.mix,
            "give": give_saved,
        },
        variants=(
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}),
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
        ),
        probes=probes,
    ),
    Pipeline(
        entry="attention_backward",
        begin=begin_backward,
        ask=ask,
        others={"attention_forward": lambda q, k, v, mask=None: (None, (q, k, v, mask))},
        stages={
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "grad_v": grad_v,
            "grad_weights": grad_weights,
            "row": weighted,
            "softmax": through_softmax,
            "factors": factors(1, 1),
            "grad_q": grad_q,
            "grad_k": grad_k,
            "last": s.nothing,
            "give": give("qkv"),
        },
        variants=(
            # The backward pass of a forward pass with this mistake.
            *variants("scale.missing", {"scale": s.nothing, "factors": factors(0, 0)}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt, "factors": factors(2, 2)}),
            *variants("scale.inverted", {"scale": s.scale_inverted, "factors": factors(-1, -1)}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim, "factors": factors(1, 1, of="v")}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants(
                "backward.no_scale", {"factors": factors(0, 0)}, {"factors": factors(0, 1)}, {"factors": factors(1, 0)}
            ),
            *variants(
                "backward.scaled_twice",
                {"factors": factors(2, 2)},
                {"factors": factors(1, 2)},
                {"factors": factors(2, 1)},
            ),
            *variants("backward.value_scaled", {"grad_v": grad_v_scaled}),
            *variants("backward.sign", {"softmax": with_signs(1, 1)}, {"softmax": with_signs(-1, 1)}),
            *variants(
                "backward.last_query_only",
                *({"last": of_last_query(*names)} for names in (("grad_v",), ("grad_k",), ("grad_v", "grad_k"))),
            ),
            *variants(
                "backward.row_mean",
                {"row": row(lambda weights, grad: (weights * grad).mean(-1, keepdim=True))},
                {"row": row_of_out_by(lambda product: product.mean(-1, keepdim=True))},
            ),
            *variants("backward.row_sum_missing", {"row": row(lambda weights, grad: 0.0)}),
            *variants(
                "backward.row_sum_axis",
                {"row": row(lambda weights, grad: (weights * grad).sum(-2, keepdim=True))},
                {"row": row(lambda weights, grad: (weights * grad).sum((-2, -1), keepdim=True))},
                {"row": row_of_out_by(lambda product: product.sum(-2, keepdim=True))},
                {"row": row_of_out_by(lambda product: product.sum(-1).unsqueeze(-2))},
            ),
            *variants(
                "backward.row_sum_unweighted",
                {"row": row(lambda weights, grad: grad.sum(-1, keepdim=True))},
                {"row": row(lambda weights, grad: grad.mean(-1, keepdim=True))},
            ),
            *variants("backward.elementwise_softmax", {"softmax": elementwise}),
            *variants("backward.weights_missing", {"softmax": without_weights}),
            *variants(
                "backward.weights_not_transposed",
                {"grad_v": grad_v_not_transposed},
                {"grad_k": grad_k_not_transposed},
                {"grad_v": grad_v_not_transposed, "grad_k": grad_k_not_transposed},
            ),
            *variants(
                "backward.scores_for_weights", {"grad_v": grad_v_of_scores}, {"grad_v": grad_v_of_unmasked_scores}
            ),
            *variants(
                "backward.mask_ignored",
                {"mask": s.nothing},
                {"mask": s.nothing, "row": row_of_out},
                {"mask": s.nothing, "normalise": by_saved_total},
                {"mask": s.nothing, "normalise": by_saved_total, "row": row_of_out},
            ),
            *variants(
                "backward.dropped_grad_out",
                {"grad_v": grad_v_of_ones},
                {"grad_weights": grad_weights_of_ones},
                {"grad_v": grad_v_of_ones, "grad_weights": grad_weights_of_ones},
            ),
            *variants("backward.order", {"give": give("kqv")}, {"give": give("vqk")}, {"give": give("qvk")}),
        ),
        probes=backward_probes,
    ),
)

SYMPTOMS = (
    breaks("backward.saved_in_place", "saved_unmodified", saying="second backward"),
    breaks("backward.remembered", "several_forwards", unless=("saved_unmodified",), saying="several forward"),
)


def pictures():
    return (of_function("attention_forward", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3))),)
