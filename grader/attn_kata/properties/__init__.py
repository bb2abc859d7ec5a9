"""The library for hidden tests.

A hidden test is a function `test_<property>` in `katas/<slug>/test_<slug>.py`. It is an ordinary pytest test. Its arguments are
any of `attempt` (a handle on the candidate's code), `reference` (a handle on the reference) and `sizes` (one of its cases). It
uses the asserts and checks of this library.

Describing a property
    claims            marks a test: its claim, where to look, its needs, its cases, and the operations that it blocks
    Sizes, randn      the sizes of one case by name; random inputs in float64
    Drawn             a case whose sizes are drawn anew for each seed
    flags_first, flags_with_gaps    flags of kept keys, (B, Tk), without empty rows
    standard          the properties that most katas share: from_scratch, gradients, train_and_eval_alike, output_dtype,
                      float32, half_precision, float64_throughout, inputs_unmodified, non_contiguous_inputs, device, own_memory

Calling the attempt
    Handle            `attempt.some_function(q, k, v)`, `attempt.SomeModule(E, H)`; `.run(...)` for gradients, modes, recordings
    Result, Opaque    the result of `.run`; a part of it that stays in the attempt's process, such as a cache
    build_pair        the attempt's module and the reference's, with the same random weights
    random_weights    random weights for parameters of given shapes
    fit               trains a module by full-batch Adam

Failing
    assert_close, assert_equal, assert_shape, assert_holds      compare; messages name one index
    check_gradients, check_leaves_inputs, check_stays_on_device check one call
    check_raises_value_error                                    an action raises ValueError
    PropertyFailed, AttemptRaised                               a failure; an exception in the attempt

    FORBIDDEN_ATTENTIONS, FORBIDDEN_SOFTMAXES, FORBIDDEN_AUTOGRAD    words for `blocks`
    strided                                                     the same numbers in a non-contiguous tensor
"""

from attn_kata.properties import standard
from attn_kata.properties.cases import Drawn, Sizes, flags_first, flags_with_gaps, randn
from attn_kata.properties.checks import (
    FORBIDDEN_ATTENTIONS,
    FORBIDDEN_AUTOGRAD,
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
from attn_kata.properties.handle import Handle, build_pair, random_weights
from attn_kata.properties.results import Opaque, Result
from attn_kata.properties.training import fit

__all__ = [
    "FORBIDDEN_ATTENTIONS",
    "FORBIDDEN_AUTOGRAD",
    "FORBIDDEN_SOFTMAXES",
    "AttemptRaised",
    "Drawn",
    "Handle",
    "Opaque",
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
