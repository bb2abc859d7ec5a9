"""Exceptions that say by themselves what is wrong in an attempt's own lines: a name that nothing sets, keys as they come."""

from __future__ import annotations

import difflib
import re

import torch

from attn_kata.diagnosis import transposed_keys
from attn_kata.properties.failures import Raised

IDS = (
    "module.no_super",
    "python.undefined_name",
    "python.size_called",
    "python.not_called",
    "python.arguments",
    "numerics.root_of_number",
    "score.not_transposed",
    "score.wrong_transpose",
    "cache.wrong_axis",
    "group.not_repeated",
)

TOO_EARLY = re.compile(r"cannot assign (?:module|parameter)s? before Module\.__init__\(\) call")
# super.__init__() and super(self)
NO_INSTANCE = re.compile(r"descriptor '__init__' (?:of|requires a) 'super' object|super\(\) argument 1 must be a type")
OF_AN_ADAPTER = "'adapter._"  # a class of an adapter, which stands for something of the code's
UNDEFINED = re.compile(r"^name '(\w+)' is not defined")
UNBOUND = re.compile(r"cannot access local variable '(\w+)'|local variable '(\w+)' referenced before")
OF_TORCH = re.compile(r"^module 'torch(?:\.nn)?(?:\.functional)?' has no attribute '(\w+)'")  # torch.trill
LACKS = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
OF_A_CALL = re.compile(
    r"missing \d+ required positional arg|takes .* positional argument|unexpected keyword argument"
    r"|cannot assign '[\w.]+' object to (?:buffer|parameter)"
)
# nn.Linear(width / 2, width)
OF_A_FRACTION = re.compile(
    r"must be tuple of ints, ?but (?:found element of type|got) float|takes an iterable of 'int' \(item \d+ is 'float'\)"
)
SIZE_CALLED = re.compile(r"'torch\.Size' object is not callable")  # x.shape(-1)
NOT_CALLED = re.compile(r"'(?:builtin_function_or_method|method)' object has no attribute '(\w+)'")
# The functions of torch take no number: torch.sqrt(q.size(-1)).
ROOT_OF_A_NUMBER = re.compile(r"^(r?sqrt)\(\): argument 'input' \(position 1\) must be Tensor, not (?:int|float)$")
OF_A_COMBINATION = re.compile(r"received an invalid combination of arguments - got \(([^()]*)\)")
# torch.cat((hidden, outputs, 2))
NO_TENSOR_JOINED = re.compile(r"^expected Tensor as element \d+ in argument 0, but got (?:int|float|str|bool)$")
# torch.transpose(2, 3)
NO_TENSOR = re.compile(r"^(\w+)\(\): argument 'input' \(position 1\) must be Tensor, not int$")
OF_A_PRODUCT = re.compile(r"Expected size for first two dimensions of batch2 tensor")
PRODUCT = r"matmul\(|\bbmm\(|[\w\])]\s*@\s*\w"
# What may lay keys out so that a product takes them. A batch of vectors needs no transpose: keys @ query[..., None].
LAYS_OUT = re.compile(
    r"transpos|permut|axes|\.[mM]?[TH]\b|\.t\(|einsum|einops|rearrange|movedim|conv|tensordot|adjoint|"
    r"view|shape\(|squeeze|None\]|flatten|cat\(|stack|split|chunk|unbind|Parameter|\bsum\("
)


# More dimensions than any tensor of an attention has.
_NO_SUCH_DIMENSION = re.compile(r"Dimension out of range \(expected to be in range of \[-\d, \d\], but got (-?\d+)\)")
# q @ k, matmul(query, key): a product with the keys themselves.
_BY_KEYS = re.compile(r"\bq\w*(?:\.\w+)?\s*(?:@|,)\s*(?:self\.)?k(?:s|eys?)?(?:_\w+)?\s*(?:[)/*]|$|#)", re.IGNORECASE)
_LAST_TWO = re.compile(
    r"transpose\(\s*(?:-1|-2|2|3)\s*,\s*(?:-1|-2|2|3)\s*\)|transpose\(\w+,\s*(?:-1|-2|2|3)\s*,\s*(?:-1|-2|2|3)\s*\)|"
    r"permute\(\s*[(\[]?\s*(?:0,\s*2,\s*3,\s*1|0,\s*1,\s*3,\s*2|0,\s*2,\s*1)\b|\.m?[TH]\b|einsum|rearrange|adjoint|swap|movedim|conv"
)


def no_such_dimension(text: str) -> bool:
    """Whether a dimension was asked that no tensor of an attention has, with any layout of its inputs: softmax(dim=4)."""
    found = _NO_SUCH_DIMENSION.search(text)
    return found is not None and not -5 < int(found[1]) < 4


# An einsum that no tensors would fit: "nhsd,nhsd->nhss".
_NO_SUCH_PATTERN = re.compile(r"^einsum\(\): (?:output subscript \w+ |invalid subscript |(?:more|fewer) operands )")


def no_such_pattern(text: str) -> bool:
    """Whether the pattern of an einsum is wrong by itself, whatever it is given."""
    return _NO_SUCH_PATTERN.search(text) is not None


_JOINED = re.compile(r"\b(?:cat|concat|concatenate)\(\s*[\[(](.*)[\])]\s*,\s*(?:dim\s*=\s*|axis\s*=\s*)?-?\d\s*\)")


def has_keys_as_they_come(text: str, line: str, code: str) -> bool:
    """Whether the product of this line raises that is of queries and keys, and no line of the code lays keys out for it."""
    return (
        OF_A_PRODUCT.search(text) is not None
        and _BY_KEYS.search(line.strip()) is not None
        and _LAST_TWO.search(code) is None
    )


def joins_unexpanded(text: str, line: str, code: str) -> bool:
    """Whether `cat` of this line joins tensors with a dimension of size 1 in different places: it broadcasts nothing."""
    joined = _JOINED.search(line)
    if joined is None or not text.startswith("Sizes of tensors must match except in dimension"):
        return False
    made = [one.strip() for one in re.split(r",(?![^()]*\))", joined[1]) if one.strip()]
    for place, one in enumerate(made):
        lines = (
            re.findall(rf"^\s*{re.escape(one)}\s*=\s*([^=\n].*)$", code, re.MULTILINE) if one.isidentifier() else [one]
        )
        made[place] = lines[0] if len(lines) == 1 else ""
    added = [re.findall(r"\.unsqueeze\((?:dim\s*=\s*)?(-?\d)\)$", one.strip()) for one in made]
    return len(added) > 1 and all(added) and len({one[0] for one in added}) == len(added)


def lacks_a_tensor(text: str, code: str) -> bool:
    """Whether a function of torch was given a number that stands in the code, and no tensor before it."""
    found = NO_TENSOR.search(text)
    return found is not None and re.search(rf"\btorch\.{found[1]}\(\s*-?\d", code) is not None


def names_what_is_not_there(text: str) -> bool:
    """Whether a function of torch was given a name that none of its ways to be called has: torch.rand(3, bias=False)."""
    found = OF_A_COMBINATION.search(text)
    given = re.findall(r"(\w+)=", found[1]) if found is not None else []
    return found is not None and any(re.search(rf"\b{name}\b", text[found.end() :]) is None for name in given)


_EXPANDED = re.compile(
    r"^The expanded size of the tensor .*Target sizes: \[([\d, ]+)\]\.\s+Tensor sizes: \[([\d, ]+)\]"
)
_INTO_A_CACHE = re.compile(r"^\s*(?:\w+\.)*\w*(?:cache|past)\w*\[[^=]*\]\s*=(?!=)", re.IGNORECASE)


def fills_cache_transposed(text: str, line: str) -> bool:
    """Whether keys or values are written into a cache whose dimensions have the same sizes in another order."""
    found = _EXPANDED.search(text)
    if found is None or _INTO_A_CACHE.search(line) is None:
        return False
    room, given = ([int(size) for size in part.split(",")] for part in found.groups())
    return room != given and sorted(room) == sorted(given)


_OTHER_HEADS = re.compile(
    r"^The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension 1$"
)
_GROUPS = re.compile(r"(?i)kv_?heads?|key_?value_?heads?|(?:num|n|kv|query)_groups?|\bgroups\b|n_?kv\b")
# What gives each query head its keys.
_REPEATS = re.compile(
    r"repeat|expand|tile|unflatten|einsum|index_select|gather|enable_gqa|stack|kron|broadcast_to|rearrange"
)


def lacks_repeated_heads(text: str, line: str, code: str) -> bool:
    """Whether query heads meet fewer key heads in a product, in code with groups of heads that repeats nothing."""
    return (
        _OTHER_HEADS.search(text) is not None
        and re.search(PRODUCT, line) is not None
        and _GROUPS.search(code) is not None
        and _REPEATS.search(code) is None
    )


# masked_fill(1 - mask, …), and not masked_fill((1 - mask).bool(), …)
_BY_A_DIFFERENCE = re.compile(
    r"masked_fill_?\(\s*\(?\s*1(?:\.0?)?\s*-\s*[\w.]+(?:\.(?:byte|squeeze|unsqueeze|view|expand|expand_as)\([^()]*\))*\s*\)?,"
)


def fills_by_a_difference(text: str, line: str) -> bool:
    """Whether it raised at `masked_fill(1 - mask, …)`, as of every mask: 1 - mask needs numbers, and masked_fill booleans.

    torch took it until 1.2, of uint8.
    """
    refused = "bool tensor is not supported" in text or "only supports boolean masks" in text
    return refused and _BY_A_DIFFERENCE.search(line) is not None


def lacks_parentheses(text: str, line: str) -> bool:
    """Whether what a tensor can do is not called, and then asked for something: `x.contiguous.view(…)`."""
    asked = NOT_CALLED.search(text)
    found = re.search(rf"\.(\w+)\.{asked[1]}\b", line) if asked is not None else None
    return found is not None and callable(getattr(torch.Tensor, found[1], None))


def misspelt(attribute: str) -> bool:
    """Whether it is nearly the name of something that every tensor has: `tranpose`."""
    near = difflib.get_close_matches(attribute, dir(torch.Tensor), 1, 0.8)
    return bool(near) and not hasattr(torch.Tensor, attribute)


def lacks_in_torch(text: str) -> bool:
    """Whether it is nearly the name of something that torch has: `nn.ScaledDotProductAttention`, as F has a function.

    A name that is not may be of another version.
    """
    found = OF_TORCH.search(text)
    known = [_plain(one) for one in (*dir(torch), *dir(torch.nn), *dir(torch.nn.functional))]
    return found is not None and bool(difflib.get_close_matches(_plain(found[1]), known, 1, 0.8))


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def hands_on(line: str) -> bool:
    """Whether a line hands on whatever it was called with, so that what is missing was missing before: f(*args, **kwargs)."""
    return re.search(r"\(\s*\*\w+\s*,\s*\*\*\w+\s*\)", line) is not None


_OF_A_CONSTRUCTOR = re.compile(r"^(\w+)(?:\.__init__)?\(\) ")  # or of a function


def is_of_a_stand_in(text: str, code: str) -> bool:
    """Whether it is the constructor of a layer of another file that refuses its arguments: what stands for it may be other."""
    found = _OF_A_CONSTRUCTOR.search(text)
    name = re.escape(found[1]) if found is not None else ""
    imported = rf"^[ \t]*from[ \t]+(\S+)[ \t]+import\b(?:[^\n(]*|[ \t]*\([^)]*)\b{name}\b"
    module = re.search(imported, code, re.MULTILINE) if name else None
    if module is not None:
        return not module[1].startswith("torch")
    owners = set(re.findall(rf"\b(\w+)\.{name}\(", code)) if name else set()  # layers.Linear(…)
    return any(_is_imported(one, code) and not _is_of_torch(one, code) for one in owners)


def _is_of_torch(name: str, code: str) -> bool:
    """Whether a name at the top of the source is torch, or a part of it."""
    imported = rf"\btorch[\w.]* as {name}\b|^\s*from torch\S* import [^\n]*\b{name}\b"
    return name == "torch" or re.search(imported, code, re.MULTILINE) is not None


def mistake(raised: Raised, code: str, line: str = "") -> str | None:
    """The id of the mistake that the exception is, or None. `code` is the attempt's, without comments; `line` raised it."""
    if not raised.frames or OF_AN_ADAPTER in raised.text:
        return None
    kind, text = raised.types[0], raised.text
    if TOO_EARLY.search(text) or NO_INSTANCE.search(text):
        return "module.no_super"
    undefined = UNDEFINED.search(text)
    if kind in ("NameError", "UnboundLocalError") and (undefined or UNBOUND.search(text)):
        # What is imported is not there because its package is not installed here.
        return None if undefined is not None and _is_imported(undefined[1], code) else "python.undefined_name"
    if kind == "AttributeError" and lacks_in_torch(text):
        return "python.undefined_name"
    if kind == "AttributeError" and lacks_parentheses(text, line):
        return "python.not_called"
    lacks = LACKS.search(text) if kind == "AttributeError" else None
    if lacks is not None:
        own = re.search(rf"^\s*class {re.escape(lacks[1])}\b", code, re.MULTILINE) is not None
        return "python.undefined_name" if own or (lacks[1] == "Tensor" and misspelt(lacks[2])) else None
    if kind == "TypeError" and ROOT_OF_A_NUMBER.search(text):
        return "numerics.root_of_number"
    if SIZE_CALLED.search(text):
        return "python.size_called"
    of_a_call = OF_A_CALL.search(text) or OF_A_FRACTION.search(text)
    if kind == "TypeError" and of_a_call and (hands_on(line) or is_of_a_stand_in(text, code)):
        return None
    of_a_call = of_a_call or NO_TENSOR_JOINED.search(text)
    if kind == "TypeError" and (of_a_call or lacks_a_tensor(text, code) or names_what_is_not_there(text)):
        return "python.arguments"
    if no_such_dimension(text) or no_such_pattern(text) or joins_unexpanded(text, line, code):
        return "python.arguments"
    if OF_A_PRODUCT.search(text) and re.search(PRODUCT, code) and not LAYS_OUT.search(code):
        return "score.not_transposed"
    if has_keys_as_they_come(text, line, code):
        return "score.not_transposed"
    if fills_cache_transposed(text, line):
        return "cache.wrong_axis"
    if lacks_repeated_heads(text, line, code):
        return "group.not_repeated"
    return "score.wrong_transpose" if transposed_keys.is_wrong(text, line, code) else None


def _is_imported(name: str, code: str) -> bool:
    """Whether a line at the top of the source imports this name: `import numpy as np`, `from x import (a, np)`.

    `import torch.nn` sets torch, and not nn.
    """
    words = rf"[^\n]*(?<![.\w]){re.escape(name)}\b"
    return (
        re.search(rf"^(?:import|from)\b{words}|^from [^\n]*\([^)]*\b{re.escape(name)}\b", code, re.MULTILINE)
        is not None
    )
