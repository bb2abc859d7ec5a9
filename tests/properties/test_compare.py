"""A comparison fails with numbers at one index, and never passes what is not close."""

from __future__ import annotations

import pytest
import torch

from attn_kata.properties import PropertyFailed, assert_close, assert_equal, assert_shape


def test_close_tensors_pass() -> None:
    right = torch.randn(2, 3, dtype=torch.float64)

    assert_close(right + 1e-7, right, atol=1e-5)


def test_a_difference_is_told_at_its_index_with_a_count_and_an_example() -> None:
    right = torch.zeros(2, 3, dtype=torch.float64)
    got = right.clone()
    got[1, 2] = 0.5

    with pytest.raises(PropertyFailed) as failed:
        assert_close(got, right, atol=1e-5)

    assert failed.value.message == "out[1, 2] is 0.5000, expected 0 (1 of 6 differ)"
    assert failed.value.example is not None
    assert failed.value.example.got[1][2] == 0.5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_close_to_no_number(value: float) -> None:
    with pytest.raises(PropertyFailed):
        assert_close(torch.tensor([value]), torch.tensor([1.0]), atol=1e9, rtol=0.0)


def test_nan_is_not_close_to_nan() -> None:
    with pytest.raises(PropertyFailed):
        assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), atol=1.0)


@pytest.mark.parametrize("other", ["nan", "inf", "-inf"])
def test_what_is_not_finite_is_never_said_to_be_expected(other: str) -> None:
    compared = torch.tensor([float(other), 1.0])
    with pytest.raises(PropertyFailed) as alike:
        assert_close(compared.clone(), compared, atol=1e-5)
    with pytest.raises(PropertyFailed) as differs:
        assert_close(torch.tensor([0.5, 1.0]), compared, atol=1e-5)

    assert alike.value.message == f"out[0] is {other}, and so is the output that it is compared with (1 of 2)"
    assert differs.value.message == f"out[0] is 0.5000, but the output that it is compared with is {other} (1 of 2)"


def test_a_shape_that_would_broadcast_is_not_the_shape() -> None:
    with pytest.raises(PropertyFailed, match=r"shape \(1, 3\), expected \(2, 3\)"):
        assert_close(torch.zeros(1, 3), torch.zeros(2, 3), atol=1.0)
    with pytest.raises(PropertyFailed, match=r"expected \(1,\)"):
        assert_shape(torch.zeros(()), (1,))


def test_equal_means_the_dtype_too() -> None:
    with pytest.raises(PropertyFailed, match="float32, expected bool"):
        assert_equal(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bool))


def test_two_numbers_that_differ_are_not_printed_alike() -> None:
    with pytest.raises(PropertyFailed) as failed:
        assert_close(
            torch.tensor([0.46480001], dtype=torch.float64), torch.tensor([0.4648], dtype=torch.float64), atol=1e-9
        )

    got, expected = failed.value.message.split(" is ")[1].split(" (")[0].split(", expected ")
    assert got != expected
