"""sdpa as a pipeline, and the ways each stage goes wrong."""

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def begin(q, k, v):
    return State(q=q, k=k, v=v, lead=q.shape[:-1])


def probe(*lead, Tq, Tk, D, Dv):
    q, k, v = randn(*lead, Tq, D), randn(*lead, Tk, D), randn(*lead, Tk, Dv)
    return Probe(args=(q, k, v), sizes={"Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv})


def probes():
    return [
        probe(2, 3, Tq=5, Tk=6, D=7, Dv=4),
        probe(3, Tq=6, Tk=4, D=5, Dv=2),  # three dimensions: an unnamed softmax dimension is another one here
        probe(2, 3, Tq=5, Tk=5, D=5, Dv=5),  # all alike: what is mistaken for another size raises nowhere
        probe(2, Tq=4, Tk=4, D=6, Dv=3),  # lengths alike, widths not
        probe(Tq=3, Tk=7, D=2, Dv=5),
    ]


PIPELINES = (
    Pipeline(
        entry="scaled_dot_product_attention",
        begin=begin,
        stages={
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "mix": s.mix,
            "shape": s.nothing,
        },
        variants=(
            *variants("mask.causal", {"mask": s.hide_later_keys}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}, {"scale": s.scale_by_query_length}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants("scale.after_softmax", {"scale": s.nothing, "rescale": s.scale_weights}),
            *variants(
                "softmax.query_axis",
                {"normalise": s.softmax_over_queries},
                {"normalise": s.softmax_over(2)},  # of four dimensions
            ),
            *variants(
                "softmax.head_axis",
                {"normalise": s.softmax_over(None)},
                {"normalise": s.softmax_over(1)},
                {"normalise": s.softmax_over(0)},
                {"normalise": s.softmax_over_heads},
                {"normalise": s.softmax_over_lead},
            ),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("mix.keys", {"mix": s.values_are_keys}),
            *variants("context.query_length", {"read": s.context_by_query_length}),
            *variants("layout.batch_as_time", {"read": s.all_tokens_together, "shape": s.apart_again}),
            *variants("score.transposed", {"score": s.score_transposed_when_square}),
            *variants("score.reshaped", {"score": s.score_reshaped}, {"score": s.score_of_keys_reshaped}),
            *variants("project.swapped", {"score": s.score_swapped}),
        ),
        probes=probes,
    ),
)


def pictures():
    return (of_function("scaled_dot_product_attention", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3))),)
