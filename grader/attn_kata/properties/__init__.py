"""What hidden tests are written with: claims, cases, the handle on an attempt, comparisons, and checks said once for all.

A hidden test is one function `test_<property>` in `katas/<slug>/test_<slug>.py`. It asks for any of `attempt` (a handle on
the candidate's code), `reference` (the same on ours) and `sizes` (one of its cases), and fails through the asserts here.
"""

from attn_kata.properties.cases import Sizes, randn
from attn_kata.properties.checks import (
    FORBIDDEN_ATTENTIONS,
    FORBIDDEN_SOFTMAXES,
    check_computes_in_dtype,
    check_from_scratch,
    check_gradients,
    check_keeps_dtype,
    check_leaves_inputs,
    check_own_memory,
    check_raises_value_error,
    check_stays_on_device,
    check_takes_strided,
    strided,
)
from attn_kata.properties.claims import claims
from attn_kata.properties.compare import assert_close, assert_equal, assert_holds, assert_shape
from attn_kata.properties.failures import AttemptRaised, PropertyFailed
from attn_kata.properties.handle import Handle, Result, build_pair, random_weights
from attn_kata.properties.training import fit

__all__ = [
    "FORBIDDEN_ATTENTIONS", "FORBIDDEN_SOFTMAXES", "AttemptRaised", "Handle", "PropertyFailed", "Result", "Sizes",
    "assert_close", "assert_equal", "assert_holds", "assert_shape", "build_pair", "check_computes_in_dtype",
    "check_from_scratch", "check_gradients", "check_keeps_dtype", "check_leaves_inputs", "check_own_memory",
    "check_raises_value_error", "check_stays_on_device", "check_takes_strided", "claims", "fit", "randn", "random_weights",
    "strided",
]  # fmt: skip
