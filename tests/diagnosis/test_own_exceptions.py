"""An exception that says by itself what is wrong is named, and one that an input may have caused is not."""

from __future__ import annotations

import pytest

from attn_kata.diagnosis import own_exceptions
from attn_kata.properties.failures import Raised

CODE = "class Attend(nn.Module):\n    def forward(self, q, k, v):\n        return q @ k @ v, torch.softmax(-1), torch.relu(v)\n"


@pytest.mark.parametrize(
    ("kind", "text", "named"),
    [
        ("AttributeError", "cannot assign module before Module.__init__() call", "module.no_super"),
        ("TypeError", "descriptor '__init__' of 'super' object needs an argument", "module.no_super"),
        ("NameError", "name 'math' is not defined", "python.undefined_name"),
        (
            "UnboundLocalError",
            "cannot access local variable 'out' where it is not associated with a value",
            "python.undefined_name",
        ),
        ("AttributeError", "'Attend' object has no attribute 'n_heads'", "python.undefined_name"),
        ("AttributeError", "'Tensor' object has no attribute 'tranpose'", "python.undefined_name"),
        ("AttributeError", "'Tensor' object has no attribute 'last_hidden_state'", None),
        (
            "AttributeError",
            "module 'torch.nn' has no attribute 'ScaledDotProductAttention'",
            "python.undefined_name",
        ),
        ("AttributeError", "module 'torch.nn' has no attribute 'GatedRetention'", None),
        ("AttributeError", "'NoneType' object has no attribute 'unbind'", None),
        ("TypeError", "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'", "python.arguments"),
        (
            "TypeError",
            "cannot assign 'Inner' object to buffer 'inner' (torch Tensor or None required)",
            "python.arguments",
        ),
        ("TypeError", "'torch.Size' object is not callable", "python.size_called"),
        ("RuntimeError", "einsum(): output subscript s appears more than once in the output", "python.arguments"),
        ("RuntimeError", "einsum(): fewer operands were provided than specified in the equation", "python.arguments"),
        (
            "RuntimeError",
            "einsum(): the number of subscripts in the equation (3) does not match the number of dimensions (4) for operand 0",
            None,
        ),
        ("TypeError", "'Tensor' object is not callable", None),
        ("TypeError", "sqrt(): argument 'input' (position 1) must be Tensor, not int", "numerics.root_of_number"),
        ("TypeError", "softmax(): argument 'input' (position 1) must be Tensor, not int", "python.arguments"),
        ("TypeError", "relu(): argument 'input' (position 1) must be Tensor, not int", None),
        ("TypeError", "expected Tensor as element 2 in argument 0, but got int", "python.arguments"),
        ("TypeError", "expected Tensor as element 1 in argument 0, but got NoneType", None),
        ("TypeError", "unsupported operand type(s) for /: 'Tensor' and 'NoneType'", None),
        (
            "RuntimeError",
            "Expected size for first two dimensions of batch2 tensor to be: [6, 7] but got: [6, 5].",
            "score.not_transposed",
        ),
        ("RuntimeError", "The size of tensor a (5) must match the size of tensor b (2)", None),
        (
            "IndexError",
            "Dimension out of range (expected to be in range of [-4, 3], but got 4)",
            "python.arguments",
        ),
        ("IndexError", "Dimension out of range (expected to be in range of [-3, 2], but got 3)", None),  # without heads
        ("IndexError", "Dimension out of range (expected to be in range of [-3, 2], but got -4)", None),
    ],
)
def test_it_is_named_by_its_type_and_words(kind, text, named):
    raised = Raised(types=(kind,), text=text, frames=((3, "forward"),))

    assert own_exceptions.mistake(raised, CODE) == named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import torch.nn", "python.undefined_name"),  # it sets torch alone
        ("import torch.nn as nn", None),
        ("from torch import nn", None),
        ("from some.where import (\n    other,\n    nn,\n)", None),
    ],
)
def test_a_name_that_a_line_imports_may_lack_its_package(line, named):
    raised = Raised(types=("NameError",), text="name 'nn' is not defined", frames=((3, "<module>"),))

    assert own_exceptions.mistake(raised, f"{line}\n{CODE}") == named


def test_one_that_is_raised_outside_of_the_attempt_is_not():
    raised = Raised(
        types=("TypeError",), text="Attend.forward() missing 1 required positional argument: 'v'", frames=()
    )

    assert own_exceptions.mistake(raised, CODE) is None


def test_a_product_in_code_that_lays_keys_out_is_not_one_of_keys_as_they_come():
    text = "Expected size for first two dimensions of batch2 tensor to be: [6, 7] but got: [6, 5]."
    raised = Raised(types=("RuntimeError",), text=text, frames=((3, "forward"),))

    assert own_exceptions.mistake(raised, CODE.replace("k @ v", "k.transpose(1, 2) @ v")) is None


OF_A_PRODUCT = "Expected size for first two dimensions of batch2 tensor to be: [6, 7] but got: [6, 5]."
SPLITS = "q, k, v = (w(x).view(B, T, H, D).transpose(1, 2) for w in layers)\n"


@pytest.mark.parametrize(
    ("line", "before", "named"),
    [
        ("scores = q @ k / math.sqrt(D)", SPLITS, "score.not_transposed"),
        ("scores = torch.matmul(query, key)", SPLITS, "score.not_transposed"),
        ("scores = (Q @ K) * scale  # (B, H, T, T)", SPLITS, "score.not_transposed"),
        ("out = weights @ v", SPLITS, None),
        ("scores = q @ kernel", SPLITS, None),
        ("scores = q @ k / math.sqrt(D)", "k = k.permute(0, 2, 3, 1)\n" + SPLITS, None),  # as minimal GPTs of 2018
        ("scores = q @ k / math.sqrt(D)", "k = k.transpose(-2, -1)\n" + SPLITS, None),
        ("scores = q @ k.transpose(-2, -1)", SPLITS, None),
    ],
)
def test_keys_as_they_come_are_told_by_the_line_of_the_product(line, before, named):
    raised = Raised(types=("RuntimeError",), text=OF_A_PRODUCT, frames=((3, "forward"),))

    assert own_exceptions.mistake(raised, before + line, line) == named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("out = out.transpose(1, 2).contiguous.view(B, T, E)", "python.not_called"),
        ("out = self.joined.view(B, T, E)", None),  # which may be a function that was handed in
        ("out = out.contiguous().view(B, T, E)", None),
    ],
)
def test_a_method_of_a_tensor_without_its_parentheses_is_told_by_the_line(line, named):
    text = "'builtin_function_or_method' object has no attribute 'view'"
    raised = Raised(types=("AttributeError",), text=text, frames=((3, "forward"),))

    assert own_exceptions.mistake(raised, CODE, line) == named


@pytest.mark.parametrize(
    ("imports", "named"),
    [
        ("from ..utils import (GELU, LayerNorm)\n", None),
        ("from .layers import GELU\n", None),
        ("from torch.nn import GELU\n", "python.arguments"),
        ("", "python.arguments"),
    ],
)
def test_a_layer_of_another_file_may_take_what_stands_for_it_does_not(imports, named):
    text = "GELU.__init__() got an unexpected keyword argument 'approx'"
    raised = Raised(types=("TypeError",), text=text, frames=((3, "__init__"),))

    assert own_exceptions.mistake(raised, imports + CODE) == named


@pytest.mark.parametrize(
    ("imports", "call", "named"),
    [
        ("from . import layers\n", "layers.dropout(x, train=True)", None),
        ("import my_layers as layers\n", "layers.dropout(x, train=True)", None),
        ("from my_layers import dropout\n", "dropout(x, train=True)", None),
        ("import torch.nn.functional as F\n", "F.dropout(x, train=True)", "python.arguments"),
        ("import math, torch.nn.functional as F\n", "F.dropout(x, train=True)", "python.arguments"),
        ("import torch\n", "torch.dropout(x, train=True)", "python.arguments"),
        ("", "self.dropout(x, train=True)", "python.arguments"),  # a function of the file, which it keeps
    ],
)
def test_a_helper_of_another_file_may_take_what_stands_for_it_does_not(imports, call, named):
    raised = Raised(
        types=("TypeError",), text="dropout() got an unexpected keyword argument 'train'", frames=((3, "forward"),)
    )

    assert own_exceptions.mistake(raised, f"{imports}{CODE}        {call}\n", call) == named


TOO_FEW = "Expected size for first two dimensions of batch2 tensor to be: [6, 7] but got: [6, 5]."
SPLIT_ALIKE = """
def split(x):
    return x.view(2, -1, 3, 4).permute(0, 2, 1, 3)

class Attend(nn.Module):
    def forward(self, query, key, value):
        q = split(self.q(query))
        k = split(self.k(key))
        {turned}
        scores = {product}
        return scores
"""
IN_A_FUNCTION = """
def attend(queries, keys, values):
    turned = keys.permute(0, 2, 1, 3)
    scores = torch.matmul(queries, turned)
    return scores.softmax(-1) @ values
"""
TOGETHER = """
class Attend(nn.Module):
    def forward(self, x):
        q, k, v = (w(x).view(2, -1, 3, 4) for w in (self.q, self.k, self.v))
        q = q.transpose(1, 2)
        k = k.transpose(1, 2)
        scores = q * self.scale @ k.transpose(1, 2)
        return scores
"""
SET_ANEW = TOGETHER.replace(
    "scores = q * self.scale @ k.transpose(1, 2)", "k = k.permute({order})\n        scores = q * self.scale @ k"
)


@pytest.mark.parametrize(
    ("code", "line", "named"),
    [
        (SPLIT_ALIKE, "q @ k.permute(1, 2, 0)", "score.wrong_transpose"),
        (SPLIT_ALIKE, "torch.matmul(q / 2, k.permute(0, 2, 3, 1))", "score.wrong_transpose"),
        (SPLIT_ALIKE, "torch.bmm(q, k.permute((1, 2, 0)))", "score.wrong_transpose"),
        (SPLIT_ALIKE, "q @ k.permute(0, 1, 3, 2)", None),  # what raises is another thing
        (SPLIT_ALIKE, "q @ k.transpose(-1, -2)", None),
        (SPLIT_ALIKE, "q.permute(0, 2, 1, 3) @ k.permute(0, 2, 3, 1)", None),
        (SPLIT_ALIKE, "q @ value.permute(1, 2, 0)", None),  # which was made otherwise
        (IN_A_FUNCTION, "torch.matmul(queries, turned)", "score.wrong_transpose"),
        (IN_A_FUNCTION.replace("0, 2, 1, 3", "0, 1, 3, 2"), "torch.matmul(queries, turned)", None),
        (TOGETHER, "q * self.scale @ k.transpose(1, 2)", "score.wrong_transpose"),
        (SET_ANEW.format(order="0, 3, 1, 2"), "q * self.scale @ k", "score.wrong_transpose"),
        (SET_ANEW.format(order="0, 1, 3, 2"), "q * self.scale @ k", None),
        (TOGETHER.replace("@ k.transpose(1, 2)", "@ k"), "q * self.scale @ k", None),  # turned as the queries are
        (TOGETHER.replace("        k = k.transpose(1, 2)\n", ""), "q * self.scale @ k.transpose(1, 2)", None),
    ],
)
@pytest.mark.parametrize(
    "text", [TOO_FEW, "The size of tensor a (6) must match the size of tensor b (4) at non-singleton dimension 1"]
)
def test_keys_that_are_transposed_so_that_no_queries_fit_are_named(code, line, named, text):
    said = f"scores = {line}"
    raised = Raised(types=("RuntimeError",), text=text, frames=((3, "forward"),))

    assert own_exceptions.mistake(raised, code.format(turned="pass", product=line), said) == named
