"""transformer_block as a pipeline, and the ways each stage goes wrong."""

import re

import torch
from torch.nn import functional

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import BEHIND_TOKENS, MASKINGS, SCALES, SCORES, SOFTMAXES
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks, heads_first
from attn_kata.properties import randn


def begin(parameters, build, x):
    _, H, _, *p = build
    causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    # `stream` is what goes straight through, `branch` what is computed beside it.
    return State(parameters=parameters, stream=x, branch=x, start=x, H=H, p=(*p, 0.0)[0], keep=causal)


def layer_norm(state, name, value):
    used = state.which.get(name, name)
    return value if used is None else norm_of(state, used, value, **state.norms)


def norm_of(state, name, value, eps=1e-5, unbiased=False, outside=False, dims=(-1,), without=(), centres=True):
    """A norm as the contract's but for what is given. `outside`: eps is added to the deviation; `without`: weight, bias."""
    mean = value.mean(dims, keepdim=True) if centres else torch.zeros_like(value[..., :1])
    centred = value - mean
    size = value.var(dims, keepdim=True, unbiased=unbiased) if centres else value.square().mean(dims, keepdim=True)
    normed = centred / (torch.sqrt(size) + eps if outside else torch.sqrt(size + eps))
    if "weight" not in without:
        normed = normed * state.parameters[f"{name}.weight"]
    return normed if "bias" in without else normed + state.parameters[f"{name}.bias"]


def norms(**how):
    """What both norms do otherwise than those of the contract."""

    def stage(state):
        state.norms = how

    return stage


def which(**names):
    """Which parameters a norm uses: another norm's, or None for no norm at all."""

    def stage(state):
        state.which = names

    return stage


def both_norms(**how):
    return {"norms": norms(**how)}


def norm(name):
    def stage(state):
        state.branch = layer_norm(state, name, state.stream)

    return stage


def norm_on_the_line(name):
    """x = norm(x): the sum starts from the normalised x."""

    def stage(state):
        state.stream = state.branch = layer_norm(state, name, state.stream)

    return stage


def unchanged(state):
    state.branch = state.stream


def norm_of_the_start(state):
    """The second branch reads the block's input, as the first."""
    state.branch = layer_norm(state, "norm2", state.start)


def project(state):
    state.x = state.context = state.branch
    s.project(*(f"attention.{name}_proj" for name in "qkv"))(state)


def project_by(q="q", k="k", v="v", **how):
    def stage(state):
        state.x = state.context = state.branch
        s.project(*(f"attention.{name}_proj" for name in (q, k, v)), **how)(state)

    return stage


def project_out(state):
    state.branch = s.linear(state, "attention.o_proj", state.out)


def output_missing(state):
    state.branch = state.out


def mlp(name, bias=True):
    def stage(state):
        weight = state.parameters[f"{name}.weight"]
        state.branch = s.linear(state, name, state.branch) if bias else state.branch @ weight.T

    return stage


def output_without_bias(state):
    state.branch = state.out @ state.parameters["attention.o_proj.weight"].T


def without_bias(state, name, value):
    return value @ state.parameters[f"{name}.weight"].T


def mlp_out_activated(state):
    mlp("mlp_out")(state)
    state.branch = functional.gelu(state.branch)


def mlp_in_of_activated(state):
    state.branch = functional.gelu(state.branch)
    mlp("mlp_in")(state)


def activate(by):
    def stage(state):
        state.branch = by(state.branch)

    return stage


def drop(state):
    state.branch = torch.dropout(state.branch, state.p, bool(getattr(state, "training", False)))


def drop_always(state):
    state.branch = torch.dropout(state.branch, state.p, True)


def add(state):
    state.stream = state.stream + state.branch
    state.out = state.stream


def no_sum(state):
    state.out = state.stream = state.branch


def add_to_the_start(state):
    """The second branch added to the block's input: the first one is lost."""
    state.out = state.stream = state.start + state.branch


def norm_and_add(name):
    """The branch's result is normalised, not its input."""

    def stage(state):
        state.out = state.stream = state.stream + layer_norm(state, name, state.branch)

    return stage


def shifted(by):
    """The causal mask with its diagonal moved."""

    def stage(state):
        s.fill(state, torch.ones_like(state.keep).tril(by))

    return stage


def upper_triangle(state):
    s.fill(state, state.keep.transpose(-2, -1))


def norm_the_sum(name):
    def stage(state):
        state.out = state.stream = layer_norm(state, name, state.stream)

    return stage


def add_and_drop(state):
    state.out = state.stream = torch.dropout(
        state.stream + state.branch, state.p, bool(getattr(state, "training", False))
    )


def drop_weights(state):
    s.softmax_over_keys(state)
    s.drop(state)


def probe(B, T, H, D, M, size=1.0):
    E = H * D
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "E": E, "H": H, "D": D}
    # The second branch counts thirty times: two forms of GELU differ by less than 1e-3.
    return Probe(args=(size * randn(B, T, E),), build=(E, H, M), sizes=sizes, stronger={"mlp_out.weight": 30.0})


def probes():
    return [probe(2, 5, 3, 4, 9), probe(3, 4, 2, 5, 8), probe(4, 6, 2, 4, 20, size=0.03), probe(2, 4, 4, 4, 6)]


PIPELINES = (
    Pipeline(
        entry="TransformerBlock",
        module=True,
        begin=begin,
        activated=True,
        stages={
            "which": which(),
            "norms": norms(),
            "norm1": norm("norm1"),
            "project": project,
            "split": s.split_heads,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": project_out,
            "drop1": drop,
            "add1": add,
            "after1": s.nothing,
            "norm2": norm("norm2"),
            "mlp_in": mlp("mlp_in"),
            "gelu": activate(functional.gelu),
            "mlp_out": mlp("mlp_out"),
            "drop2": drop,
            "add2": add,
            "after2": s.nothing,
        },
        variants=(
            *variants(
                "block.post_norm",
                {
                    "norm1": unchanged,
                    "after1": norm_the_sum("norm1"),
                    "norm2": unchanged,
                    "after2": norm_the_sum("norm2"),
                },
            ),
            *variants("block.no_residual", {"add1": no_sum, "add2": no_sum}, {"add1": no_sum}, {"add2": no_sum}),
            *variants(
                "block.residual_of_norm",
                {"norm1": norm_on_the_line("norm1"), "norm2": norm_on_the_line("norm2")},
                {"norm1": norm_on_the_line("norm1")},
                {"norm2": norm_on_the_line("norm2")},
            ),
            *variants(
                "block.norm_shared",
                {"which": which(norm2="norm1")},
                {"which": which(norm1="norm2")},
                {"which": which(norm1="norm2", norm2="norm1")},
            ),
            *variants(
                "block.norm_missing",
                {"which": which(norm1=None)},
                {"which": which(norm2=None)},
                {"which": which(norm1=None, norm2=None)},
            ),
            *variants("block.parallel", {"norm2": norm_of_the_start}),
            *variants("block.branch_missing", {"add2": s.nothing}, {"add1": s.nothing}),
            *variants("block.first_branch_lost", {"add2": add_to_the_start}),
            *variants(
                "block.norm_of_branch",
                {"norm1": unchanged, "add1": norm_and_add("norm1"), "norm2": unchanged, "add2": norm_and_add("norm2")},
            ),
            *variants(
                "block.eps",
                *(both_norms(eps=eps) for eps in (1e-3, 1e-6, 1e-12)),
                both_norms(eps=1e-6, outside=True),
                both_norms(eps=1e-8),
            ),
            *variants(
                "block.unbiased_variance", both_norms(unbiased=True), both_norms(unbiased=True, eps=1e-6, outside=True)
            ),
            *variants(
                "block.norm_parameters",
                both_norms(without=("bias",)),
                both_norms(without=("weight",)),
                both_norms(without=("weight", "bias")),
            ),
            *variants("block.norm_axis", both_norms(dims=(-2, -1)), both_norms(dims=(-2,))),
            *variants(
                "block.rms_norm",
                both_norms(centres=False),
                both_norms(centres=False, without=("bias",)),
                *(both_norms(centres=False, eps=eps) for eps in (1e-6, 1e-12)),
            ),
            *variants("block.activation_twice", {"mlp_out": mlp_out_activated}),
            *variants(
                "block.activation_place",
                {"gelu": s.nothing, "mlp_out": mlp_out_activated},
                {"gelu": s.nothing, "mlp_in": mlp_in_of_activated},
            ),
            *variants(
                "block.bias_lost",
                {"mlp_in": mlp("mlp_in", bias=False)},
                {"mlp_out": mlp("mlp_out", bias=False)},
                {"output": output_without_bias},
                {"mlp_in": mlp("mlp_in", bias=False), "mlp_out": mlp("mlp_out", bias=False)},
                {"project": project_by(by=without_bias)},
                {"project": project_by(by=without_bias), "output": output_without_bias},
            ),
            *variants("block.relu", {"gelu": activate(functional.relu)}),
            *variants("block.tanh_gelu", {"gelu": activate(lambda h: functional.gelu(h, approximate="tanh"))}),
            *variants(
                "block.activation",
                {"gelu": activate(functional.silu)},
                {"gelu": activate(lambda h: h * torch.sigmoid(1.702 * h))},
                {"gelu": activate(torch.tanh)},
                {"gelu": activate(lambda h: h)},
                {"gelu": activate(lambda h: functional.silu(h) * h)},
                {"gelu": activate(lambda h: functional.gelu(h) * h)},
                {"gelu": activate(lambda h: functional.relu(h) * h)},
            ),
            *variants("block.not_causal", {"mask": s.nothing}),
            *variants("mask.shifted", {"mask": shifted(1)}, {"mask": shifted(-1)}),
            *variants("mask.upper_triangle", {"mask": upper_triangle}),
            *variants("project.key_for_value", {"project": project_by(v="k")}),
            *variants("project.query_for_value", {"project": project_by(v="q")}),
            *variants("project.query_for_key", {"project": project_by(k="q")}),
            *variants(
                "project.exchanged", *({"project": project_by(*order)} for order in ("qvk", "vkq", "kvq", "vqk"))
            ),
            *variants("split.no_transpose", {"split": s.split_no_transpose}),
            *BEHIND_TOKENS,
            *variants("merge.no_transpose", {"merge": s.merge_no_transpose}),
            *variants(
                "merge.wrong_transpose", {"merge": s.merge_transposed_last}, {"merge": s.merge_in_order(0, 3, 2, 1)}
            ),
            *variants("output.missing", {"output": output_missing}),
            *SCORES,
            *SCALES,
            *MASKINGS,
            *SOFTMAXES,
            *variants("dropout.never", {"drop1": s.nothing, "drop2": s.nothing}, shows_in_values=False),
            *variants("dropout.always", {"drop1": drop_always, "drop2": drop_always}, shows_in_values=False),
            *variants("block.dropout_missing", {"drop1": s.nothing}, {"drop2": s.nothing}, shows_in_values=False),
            *variants(
                "block.dropout_on_sum",
                {"drop1": s.nothing, "add1": add_and_drop, "drop2": s.nothing, "add2": add_and_drop},
                shows_in_values=False,
            ),
            *variants(
                "block.dropout_inside",
                {"drop1": s.nothing, "normalise": drop_weights},
                {"normalise": drop_weights},
                shows_in_values=False,
            ),
        ),
        probes=probes,
    ),
)


def drops_inside(evidence):
    """A branch's result is no multiple of what it should be: dropout acts somewhere inside of a branch."""
    failure = evidence.failures.get("dropout_acts_on_branches")
    return 0 if failure is not None and failure.message.startswith("a branch adds other numbers") else None


def one_norm(evidence):
    """The parameters of one norm are missing, and the code uses those of the other twice."""
    failure = evidence.failures.get("parameters")
    if failure is None:
        return None
    has = failure.message.partition(";")[0]
    for here, other in (("norm1", "norm2"), ("norm2", "norm1")):
        if f"{here}.weight" in has and f"{other}.weight" not in has:
            twice = len(re.findall(rf"self\.{here}\(", evidence.code)) > 1
            return 0 if twice or re.search(rf"self\.{other} = self\.{here}\b", evidence.code) else None
    return None


SYMPTOMS = (
    breaks("dropout.always", "no_dropout_in_eval", saying="with dropout=0.5"),
    breaks("dropout.never", "something_is_dropped", saying="^nothing is dropped"),
    Symptom(id="block.norm_shared", shows=one_norm),
    breaks("block.dropout_missing", "dropout_acts_on_branches", saying="branch is not dropped"),
    breaks("dropout.not_rescaled", "dropout_acts_on_branches", saying="not divided by 1 - dropout"),
    breaks("block.dropout_on_sum", "dropout_acts_on_branches", saying="^entries of the output are 0"),
    Symptom(id="block.dropout_inside", shows=drops_inside),
    breaks("dropout.shared", "dropout_is_independent", saying="the same entries dropped"),
    breaks("dropout.keep_probability", "dropout_is_independent", saying="entries were dropped, with dropout=0.3"),
    breaks("dropout.drawn_once", "dropout_is_fresh"),
    breaks("arguments.unchecked", "heads_must_divide"),
    Symptom(id="arguments.order", shows=heads_first),
)
