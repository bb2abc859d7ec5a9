"""Weights that are copied into a module of another dtype."""

import pytest
import torch
from torch import nn

from attn_kata.attempt.modules import copy_weights


class Plain(nn.Linear):
    pass


class WithBuffer(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.register_buffer("scale", torch.ones(3))


class WithItsOwnConversion(nn.Linear):
    def to(self, *args):
        self.converted = True
        return super().to(*args)


@pytest.mark.parametrize("kind", [Plain, WithBuffer, WithItsOwnConversion])
def test_a_module_is_converted_as_torch_does_and_keeps_its_parameters_and_their_strides(kind):
    module = kind(2, 3)
    module.weight = nn.Parameter(torch.ones(2, 3).T)
    before, alike = dict(module.named_parameters()), kind(2, 3)
    alike.weight = nn.Parameter(torch.ones(2, 3).T)
    weights = {"weight": torch.randn(3, 2).double(), "bias": torch.randn(3).double()}

    copy_weights(module, weights)
    alike.to(torch.float64)

    assert {name: id(value) for name, value in module.named_parameters()} == {
        name: id(value) for name, value in before.items()
    }
    assert {name: (value.dtype, value.stride()) for name, value in module.state_dict().items()} == {
        name: (value.dtype, value.stride()) for name, value in alike.state_dict().items()
    }
    assert all(torch.equal(module.state_dict()[name], weight) for name, weight in weights.items())
    assert getattr(module, "converted", False) == (kind is WithItsOwnConversion)


def test_a_parameter_that_has_the_dtype_already_keeps_its_memory():
    module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False).double())
    view = module[1].weight.detach()[0]

    copy_weights(module, {"0.weight": torch.eye(2).double(), "1.weight": torch.full((2, 2), 3.0).double()})

    assert torch.equal(view, torch.full((2,), 3.0).double())
    assert torch.equal(module[0].weight, torch.eye(2).double())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_turns_that_a_module_keeps_as_complex_numbers_stay_complex(dtype):
    module = nn.Linear(2, 2, bias=False)
    module.register_buffer("turns", torch.polar(torch.ones(3), torch.arange(3.0)))
    module.register_buffer("places", torch.arange(3))
    weight, turns = module.weight, module.turns

    copy_weights(module, {"weight": torch.eye(2, dtype=dtype)})

    assert module.weight is weight
    assert weight.dtype == dtype
    assert module.places.dtype == torch.int64
    assert module.turns.is_complex()
    assert module.turns.real.dtype == dtype
    assert torch.equal(module.turns.to(turns.dtype), turns)
