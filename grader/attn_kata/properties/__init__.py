"""What hidden tests are written with: claims, cases, the handle on an attempt, comparisons, and checks said once for all.

A hidden test is one function `test_<property>` in `katas/<slug>/test_<slug>.py`. It asks for any of `attempt` (a handle on
the candidate's code), `reference` (the same on ours) and `sizes` (one of its cases), and fails through the asserts here.
"""

from .cases import Sizes, randn
from .checks import (
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
from .claims import claims
from .compare import assert_close, assert_equal, assert_holds, assert_shape
from .failures import AttemptRaised, PropertyFailed
from .handle import Handle, Result, build_pair, random_weights
from .training import fit

__all__ = [
    "FORBIDDEN_ATTENTIONS", "FORBIDDEN_SOFTMAXES", "AttemptRaised", "Handle", "PropertyFailed", "Result", "Sizes",
    "assert_close", "assert_equal", "assert_holds", "assert_shape", "build_pair", "check_computes_in_dtype",
    "check_from_scratch", "check_gradients", "check_keeps_dtype", "check_leaves_inputs", "check_own_memory",
    "check_raises_value_error", "check_stays_on_device", "check_takes_strided", "claims", "fit", "randn", "random_weights",
    "strided",
]  # fmt: skip
