"""What code does wrong that lays an image out as tokens, or tokens as an image, by a reshape alone."""

from __future__ import annotations

from torch import Tensor

from attn_kata.diagnosis.pipeline import Pipeline, State, Variant, variants


def wrong_reshapes(pipeline: Pipeline) -> tuple[Variant, ...]:
    """For a pipeline that gets (B, T, E) of an image (B, E, T): reshaped to (B, T, E) before it, or back after it, or both."""
    first, *_, last = pipeline.stages

    def before(state: State) -> None:
        for name in ("x", "context"):
            tokens = getattr(state, name, None)
            if isinstance(tokens, Tensor):
                setattr(state, name, tokens.transpose(1, 2).reshape(tokens.shape))
        pipeline.stages[first](state)

    def after(state: State) -> None:
        pipeline.stages[last](state)
        B, T, E = state.out.shape
        state.out = state.out.reshape(B, E, T).transpose(1, 2)

    return variants("layout.mixed_places", {first: before}, {last: after}, {first: before, last: after})
