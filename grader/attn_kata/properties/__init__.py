"""What a kata's hidden tests are written with.

A hidden test is one function `test_<property>` in `katas/<slug>/test_<slug>.py`, an ordinary pytest test. It asks for any of
`attempt` (a handle on the candidate's code), `reference` (the same on ours) and `sizes` (one of its cases), and fails through
the asserts and checks here.

Saying what a property is
    claims            marks a test: its claim, where to look, what it needs, its cases, what it blocks
    Sizes, randn      the sizes of one case by name; random inputs in float64
    flags_first, flags_with_gaps    flags of kept keys, (B, Tk), no row of which is empty
    standard          the properties that every kata is asked: from_scratch, gradients, train_and_eval_alike, output_dtype,
                      float32, half_precision, float64_throughout, inputs_unmodified, non_contiguous_inputs, device, own_memory

Asking the attempt
    Handle            `attempt.some_function(q, k, v)`, `attempt.SomeModule(E, H)`; `.run(...)` for gradients, modes, recordings
    Result            what `.run` returns
    build_pair        the attempt's module and the reference's, with the same random weights
    random_weights    random weights for parameters of given shapes
    fit               trains a module by full-batch Adam

Failing
    assert_close, assert_equal, assert_shape, assert_holds      compare; messages name one index
    check_gradients, check_leaves_inputs, check_stays_on_device check one call
    check_raises_value_error                                    an action raises ValueError
    PropertyFailed, AttemptRaised                               what a failure is; what the attempt raised

    FORBIDDEN_ATTENTIONS, FORBIDDEN_SOFTMAXES                   words for `blocks`
    strided                                                     a tensor's numbers in a layout that is not contiguous
"""

from attn_kata.properties import standard
from attn_kata.properties.cases import Sizes, flags_first, flags_with_gaps, randn
from attn_kata.properties.checks import (
    FORBIDDEN_ATTENTIONS,
    FORBIDDEN_SOFTMAXES,
    check_gradients,
    check_leaves_inputs,
    check_raises_value_error,
    check_stays_on_device,
    strided,
)
from attn_kata.properties.claims import claims
from attn_kata.properties.compare import assert_close, assert_equal, assert_holds, assert_shape
from attn_kata.properties.failures import AttemptRaised, PropertyFailed
from attn_kata.properties.handle import Handle, Result, build_pair, random_weights
from attn_kata.properties.training import fit

__all__ = [
    "FORBIDDEN_ATTENTIONS",
    "FORBIDDEN_SOFTMAXES",
    "AttemptRaised",
    "Handle",
    "PropertyFailed",
    "Result",
    "Sizes",
    "assert_close",
    "assert_equal",
    "assert_holds",
    "assert_shape",
    "build_pair",
    "check_gradients",
    "check_leaves_inputs",
    "check_raises_value_error",
    "check_stays_on_device",
    "claims",
    "fit",
    "flags_first",
    "flags_with_gaps",
    "randn",
    "random_weights",
    "standard",
    "strided",
]
