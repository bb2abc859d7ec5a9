"""The class of an adapter: a module with the contract's names. It lays its weights into the code's own layers, and calls it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from attn_kata.readings.adapters import laying
from attn_kata.readings.adapters.given_masks import as_taken, where_given
from attn_kata.readings.adapters.own_code import BUILDER, arguments
from attn_kata.readings.candidates import caching, layer_sizes, positions
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import CHANNELS_FIRST, ONE_QUERY, Reading

# The parameters of the code's own, in whose places the kata's weights are laid before each call.
_TAKEN_OUT = [
    "    for path, value in list(self.theirs.named_parameters(remove_duplicate=False)):",
    "        self.shapes_of_theirs[path] = value.shape",
    "        owner, name = self.theirs.get_submodule(path.rpartition('.')[0]), path.rpartition('.')[2]",
    "        owner._parameters.pop(name, None)",
    "        owner.__dict__.pop(name, None)",
    "        owner._buffers[name] = value.detach()",
    "    for owner, name, _ in self.places():",
    "        owner._parameters.pop(name, None)",
    "        owner._buffers.pop(name, None)",
    "    for part in self.theirs.modules():  # it may ask for its device: next(self.parameters()).device",
    "        part.__dict__['parameters'] = self.given_parameters",
]


def source(reading: Reading, contract: Contract, *, own_weights: bool = False) -> str:
    """The class with the contract's name and layers. With `own_weights` it calls the code with those that it has made."""
    symbols = [symbol for symbol, _ in contract.arguments]
    signature = ", ".join(
        symbol + (f"={default}" if default is not None else "") for symbol, default in contract.arguments
    )
    sizes = _sizes(symbols)
    given = ", ".join(
        f"{name}={name}" for name in ("E", "H", "D", "C", "p", "I", "V", "G", "M") if name in symbols or name in sizes
    )
    body = [
        f"def __init__(self, {signature}):",
        "    super().__init__()",
        *(f"    {name} = {value}" for name, value in sizes.items()),
        "    self.heads_of_theirs = H",
        *(["    self.groups_of_theirs = G"] if contract.has_groups else []),
        *(f"    {line}" for line in laying.layers(contract)),
        *_built(reading, given),
        "    self.shapes_of_theirs = {}",
        *([] if own_weights else _TAKEN_OUT),
        "",
        "def given_parameters(self, recurse=True):",
        '    """What code that asks for its parameters gets: those that are laid into it."""',
        "    return (value for _, _, value in self.places())",
        "",
        "def laid(self):",
        '    """The parameters as the code stores them, by the path of its own."""',
        "    H = self.heads_of_theirs",
        *(["    G = self.groups_of_theirs"] if contract.has_groups else []),
        *(f"    {line}" for line in laying.laid(reading, contract)),
        "",
        "def places(self):",
        '    """Each of these parameters with the module that it belongs to, where this size of module has it."""',
        *(["    return []"] if own_weights else []),
        "    modules = dict(self.theirs.named_modules())",
        "    shapes = self.shapes_of_theirs",
        "    laid = {path: value.reshape(shapes[path]) if len(shapes.get(path, ())) > 3 else value",
        "            for path, value in self.laid().items()}",
        *(_of_its_own_sizes(reading) if not {"I", "C", "V"} & set(symbols) else []),
        "    every = [(*path.rpartition('.')[::2], value) for path, value in laid.items()]",
        "    return [(modules[owner], name, value) for owner, name, value in every if owner in modules]",
        "",
        *(_in_float32(contract) if reading.float32 else []),
        f"def {'narrow' if reading.float32 else 'forward'}(self, {_inputs(contract)}):",
        "    for owner, name, weight in self.places():",
        f"        owner.__dict__[name] = weight{'.float()' if reading.float32 else ''}",
        "    H = self.heads_of_theirs",
        *(f"    {line}" for line in _forward(reading, contract)),
    ]
    if contract.has_score and reading.order == "time" and reading.returns_weights:
        body += ["", *_BATCH_FIRST]
    text = f"\n\nclass {contract.entry}(_nn.Module):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
    return text + (_one_by_one(contract) if reading.one_sample else "")


def _of_its_own_sizes(reading: Reading) -> list[str]:
    """The lines that compare the sizes of the code's layers with those of the contract's, which it would compute with.

    Not where the contract tells two sizes apart that the code may have as one: the widths of x and of a context.
    """
    by_design = (reading.o.weight, reading.o.bias) if layer_sizes.may_be_narrow(reading) else ()
    return [
        "    for path, value in laid.items():",
        f"        if value.shape != shapes.get(path, value.shape) and path not in {by_design!r}:",
        "            raise RuntimeError(",
        "                f'{path} has the shape {tuple(shapes[path])}, where {tuple(value.shape)} is wanted for these sizes'",
        "            )",
    ]


def _by_token(reading: Reading, x: str) -> list[str]:
    """The lines that call code with one token after the other, or with chunks, for code that keeps the keys of earlier ones."""
    call = tuple((name, "place" if value == "0" else value) for name, value in reading.call)
    step = reading.chunks or 1
    is_handed_back = caching.is_handed_back(reading)
    # One that is made first is filled in its place, whatever the call returns.
    hands_on = [f"    {caching.HANDED_BACK} = _handed_on(given, outs[-1])"] * (is_handed_back and not reading.cache)
    held = f"[getattr(self.theirs, name, None) for name in {reading.caches!r}]"
    keeps = f"{caching.HANDED_BACK} is not None" if is_handed_back else f"any(map(_holds_something, {held}))"
    checks = [
        f"    if {x}.any() and not {keeps}:",  # keys of zeros look like none
        f"        raise RuntimeError({caching.HANDS_BACK_NOTHING!r})",
    ]
    return [
        f"whole, outs, {caching.HANDED_BACK} = {x}, [], {_first_cache(reading, x)}",
        "at_first, buffers_at_first = dict(vars(self.theirs)), dict(self.theirs._buffers)",
        f"for place in [0, *range(1, whole.shape[1], {step})]:",
        f"    {x} = whole[:, place : place + {step}] if place else whole[:, :1]",
        *(f"    {line}" for line in positions.call_lines(call, (), x)),
        # It writes into them, and the backward pass needs what was there.
        f"    for name in {reading.caches!r}:",
        "        if isinstance(getattr(self.theirs, name, None), _torch.Tensor):",
        "            setattr(self.theirs, name, getattr(self.theirs, name).clone())",
        f"    given = self.theirs({arguments(replace(reading, call=call))})",
        f"    outs.append({reading.part('given')})",
        *hands_on,
        *checks,
        # The next text begins without what this one has left.
        "for name in set(vars(self.theirs)) - set(at_first):",
        "    del vars(self.theirs)[name]",
        "vars(self.theirs).update(at_first)",
        "self.theirs._buffers.clear()",
        "self.theirs._buffers.update(buffers_at_first)",
        "if not isinstance(outs[0], _torch.Tensor):",
        "    return outs[0]",
        f"{x}, out = whole, _torch.cat(outs, dim=1)",
    ]


def _first_cache(reading: Reading, x: str) -> str:
    """What the first call gets for its cache."""
    if reading.cache in ("", "dict"):
        return "_Nothing()" if reading.cache else "None"
    sizes = {
        "16": f"len({x})",
        "L": "256",
        "G": "self.groups_of_theirs",
        "D": f"{x}.shape[-1] // H",
        "E": f"{x}.shape[-1]",
    }
    given = ", ".join(f"{name}={sizes.get(value, value)}" for name, value in reading.cache_build)
    return f"_as_wide({reading.cache}({given}), {x}.dtype)"


def _one_by_one(contract: Contract) -> str:
    """The call, once for each sample, for code that takes a batch of one. A mask (T, T) is one for all samples."""
    masks = [name for name in contract.inputs if name in ("mask", "keep")]
    of_samples = "2" if contract.mask == "keys" else "4"
    cut = [f"{name}[each]" for name in contract.inputs if name not in masks]
    cut += [
        f"{name}[each] if {name} is not None and {name}.dim() == {of_samples} and len({name}) > 1 else {name}"
        for name in masks
    ]
    return f"""

def _one_by_one(forward):
    def called(self, {_inputs(contract)}):
        samples = [slice(number, number + 1) for number in range(len({contract.inputs[0]}))]
        outs = [forward(self, {", ".join(cut)}) for each in samples]
        if all(isinstance(out, _torch.Tensor) for out in outs):
            return _torch.cat(outs)
        if all(isinstance(out, tuple) and all(isinstance(part, _torch.Tensor) for part in out) for out in outs):
            return tuple(map(_torch.cat, zip(*outs)))
        return outs[0]

    return called


{contract.entry}.forward = _one_by_one({contract.entry}.forward)
"""


def _built(reading: Reading, given: str) -> list[str]:
    """The lines of the constructor that build the code's own module; of one length, in a method for any length."""
    if not reading.one_length:
        return [f"    self.theirs = {BUILDER}({given})"]
    return [
        f"    self.sizes_of_theirs = dict({given})",
        "    self.build(256)",
        "",
        "def build(self, L):",
        '    """Build the code\'s own module for sequences of the length L."""',
        f"    self.length, self.theirs = L, {BUILDER}(**self.sizes_of_theirs, L=L)",
    ]


def _sizes(symbols: list[str]) -> dict[str, str]:
    """Sizes that the contract's constructor does not have, from those that it has."""
    every = {
        "H": "1",
        "D": "E // H",
        "E": "D * H" if "H" in symbols else "D" if "D" in symbols else "I",
        "V": "D",
        "I": "E",
        "C": "I" if "I" in symbols else "E",
        "p": "0.0",
    }
    order = ("H", "E", "D", "V", "I", "C", "p") if "E" not in symbols else ("H", "D", "V", "I", "C", "p")
    return {name: every[name] for name in order if name not in symbols}


def _inputs(contract: Contract) -> str:
    return ", ".join(f"{name}=None" if name == "mask" else name for name in contract.inputs)


def _in_float32(contract: Contract) -> list[str]:
    """The call of code that computes in float32: it gets float32, and its results get the dtype of the inputs."""
    first = contract.inputs[0]
    given = ", ".join(name if name in ("mask", "keep") else f"{name}.float()" for name in contract.inputs)
    return [
        f"def forward(self, {_inputs(contract)}):",
        "    self.theirs.float()",
        f"    out = self.narrow({given})",
        "    if isinstance(out, _torch.Tensor):",
        f"        return out.to({first}.dtype)",
        "    parts = isinstance(out, tuple) and all(isinstance(part, _torch.Tensor) for part in out)",
        f"    return tuple(part.to({first}.dtype) for part in out) if parts else out",
        "",
    ]


def _forward(reading: Reading, contract: Contract) -> list[str]:
    first = contract.inputs[0]
    keys = "context" if contract.is_cross else "k" if contract.has_score else "key" if contract.takes_qkv else first
    inputs = (first, keys) if contract.is_cross else contract.inputs[:3] if contract.takes_qkv else (first,)
    sizes = {
        "E": f"{first}.shape[-1]",
        "D": f"{first}.shape[-1] // H",
        "L": f"max({first}.shape[-2], {keys}.shape[-2])",
        "B": f"{first}.shape[0]",
        "T": f"{first}.shape[-2]",
        "S": f"{keys}.shape[-2]",
    }
    asked = [value for _, value in reading.call]
    lines = [f"{name} = {size}" for name, size in sizes.items() if any(re.search(rf"\b{name}\b", one) for one in asked)]
    lines += [f"zeros, ones = {first}.new_zeros, {first}.new_ones"] * bool(reading.filled)
    if reading.one_length:
        lines += [
            f"if self.length != {first}.shape[-2]:",
            f"    self.build({first}.shape[-2])",
            f"    self.theirs.train(self.training).to({first}.device, {first}.dtype)",
            "for owner, name, weight in self.places():",
            f"    owner.__dict__[name] = weight{'.float()' if reading.float32 else ''}",
        ]
    if reading.dims:
        lines += [
            f"lead = {first}.shape[:-2]",
            *(f"{name} = {name}.flatten(0, -3) if {name}.dim() > 2 else {name}[None]" for name in inputs),
        ]
    if (
        contract.is_block and reading.mask != "none"
    ):  # the caller's mask is what hides later keys; that of an encoder, none
        open_mask = any("causal" in contract.conventions[name].leaves_out for name in reading.conventions)
        hides = "" if open_mask else ".tril()"
        lines.append(
            f"mask = _torch.ones({first}.shape[-2], {first}.shape[-2], dtype=_torch.bool, device={first}.device){hides}"
        )
        lines += as_taken(reading, f"mask.expand({first}.shape[0], H, {first}.shape[-2], {first}.shape[-2])", first)
    if "mask" in contract.inputs and reading.mask != "none":
        queries = "1" if reading.query in ONE_QUERY else f"{first}.shape[-2]"
        whole = f"mask.expand({first}.shape[0], H, {queries}, {keys}.shape[-2])"
        if contract.mask == "keys":
            given = ["mask = mask[:, None, None, :]", *as_taken(reading, whole, first)]
            lines += where_given(reading, given, f"{first}.shape[0], {keys}.shape[-2]", first)
        else:
            shape = f"{first}.shape[-2], {keys}.shape[-2]"
            lines += where_given(reading, as_taken(reading, whole, first), shape, first)
    if contract.has_score:
        return lines + _scored(reading)
    if contract.returns:
        shape = f"{first}.shape[0], H, {first}.shape[-2], {keys}.shape[-2]"
        lines.append(f"weights = {first}.new_zeros({shape})  # for code that returns none")
    if reading.order == "time":
        lines += [f"{name} = {name}.transpose(0, 1).contiguous()" for name in contract.inputs if name != "mask"]
    if reading.order in CHANNELS_FIRST:  # (B, T, E) to (B, E, T), or to an image with the places in a column
        column = "[..., None]" * (reading.order == "image")
        places = [name for name in contract.inputs if name != "mask"]
        lines += [f"{name} = {name}.transpose(1, 2).contiguous(){column}" for name in places]
    if reading.order == "grid":
        lines += [f"{name} = {name}[:, :, None]" for name in contract.inputs if name != "mask"]
    if reading.order == "groups":
        # With another sequence beside it, which must change nothing. The same tokens in another order would not be seen.
        beside = "_torch.stack([{0}, {0}.detach().flip(-1)], 1)"
        lines += [f"{name} = {beside.format(name)}" for name in contract.inputs if name != "mask"]
    if reading.globals:
        lines.append("_inspect.unwrap(_theirs.forward).__globals__.update(self.theirs.sizes_at_module_level)")
    lines += positions.call_lines(() if reading.by_token else reading.call, reading.caches, first)
    if reading.by_token:
        lines += _by_token(reading, first)
    elif reading.dims == 2:  # one sample at a time
        together = ", ".join(inputs)
        each = f"{together} in zip({together})" if len(inputs) > 1 else f"{first} in {first}"
        lines += [
            f"returned = [self.theirs({arguments(reading)}) for {each}]",
            f"outs = [{reading.part('one')} for one in returned]",
            "if not isinstance(outs[0], _torch.Tensor):",
            f"    return outs[0]{', weights' * bool(contract.returns)}",
            "out = _torch.stack(outs)",
        ]
        if len(reading.places) > 1:
            lines.append(f"weights = _torch.stack([{reading.part('one', 1)} for one in returned])")
    elif reading.query in ONE_QUERY:
        lines += [
            f"returned = [self.theirs({arguments(reading)}) for {first} in {_each_query(reading.query, first)}]",
            f"outs = [{reading.part('one')} for one in returned]",
            "if not all(isinstance(one, _torch.Tensor) for one in outs):",
            f"    return outs[0]{', weights' * bool(contract.returns)}",
            f"out = _torch.stack([one.reshape(len({first}), -1) for one in outs], 1)",
        ]
    else:
        lines.append(f"out = self.theirs({arguments(reading)})")
    of_each = reading.dims == 2 or reading.query in ONE_QUERY
    if len(reading.places) > 1 and not of_each:
        lines.append(f"weights = {reading.part('out', 1)}")
    if reading.places and not of_each and not reading.by_token:
        lines.append(f"out = {reading.part('out')}")
    elif contract.returns:
        lines += ["if not isinstance(out, _torch.Tensor):", "    return out, weights"]
    elif (
        reading.residual
        or reading.order != "batch"
        or reading.dims
        or ("o" in contract.layers and not reading.o.weight)
    ):
        lines += ["if not isinstance(out, _torch.Tensor):", "    return out"]
    if reading.residual:
        lines.append(f"out = out - {first}")
    if reading.order == "time":
        lines.append("out = out.transpose(0, 1)")
    if reading.order in CHANNELS_FIRST:
        lines.append(f"out = out{'.flatten(2)' * (reading.order == 'image')}.transpose(1, 2)")
    if reading.order == "grid":
        lines.append("out = out.flatten(1, 2)")
    if reading.order == "groups":
        lines.append("out = out[:, 0]")
    if "o" in contract.layers and not reading.o.weight and not contract.is_block and not reading.no_output:
        if reading.q.layout == "wide":  # of each head the columns that the contract's has
            name = contract.layers["o"].name
            lines.append(f"out = out.unflatten(-1, (H, -1))[..., : self.{name}.in_features // H].flatten(-2)")
        name = contract.layers["o"].name
        unmerged = (
            "raise ValueError(f'it returned {tuple(out.shape)}: its heads are not merged, and it has no output layer')"
        )
        lines += [f"if out.dim() == 4 and out.shape[-1] != self.{name}.in_features:", f"    {unmerged}"]
        lines.append(f"out = self.{name}(out)")
    elif (
        "o" in contract.layers and not contract.is_block and reading.o.weight.endswith(".weight")
    ):  # it may be left out where H = 1
        owner = reading.o.weight.rpartition(".")[0]
        lines += [
            f"if isinstance(dict(self.theirs.named_modules()).get('{owner}', _nn.Identity()), _nn.Identity):",
            f"    out = self.{contract.layers['o'].name}(out)",
        ]
    lines.append("return out.reshape(*lead, *out.shape[-2:])" if reading.dims else "return out")
    if contract.returns:
        lines[-1] = "return out, weights"
    return lines


def _each_query(shape: str, first: str) -> str:
    """What gives the queries of `first` (B, T, E) one by one in this shape; "" for all at once."""
    ways = {
        "(B, E)": f"{first}.unbind(1)",
        "(B, 1, E)": f"{first}.split(1, 1)",
        "(1, B, E)": f"{first}.transpose(0, 1).split(1, 0)",
    }
    return ways.get(shape, "")


# Where there are as many samples as keys, the shape does not say it.
_BATCH_FIRST = [
    "def batch_first(self, weights, k):",
    '    """Weights with the batch first, for code that may return them as (T, B)."""',
    "    if k.shape[0] != k.shape[1]:",
    "        type(self).turned = weights.shape[:2] == k.shape[:2]",
    "    return weights.transpose(0, 1) if getattr(type(self), 'turned', False) else weights",
]


def _scored(reading: Reading) -> list[str]:
    """The call of a learned score, once for each query where the code takes one at a time."""
    called = reading.part(f"self.theirs({arguments(reading)})")
    lines = ["values = v"]
    if reading.order == "time":
        lines += ["k, v = k.transpose(0, 1).contiguous(), v.transpose(0, 1).contiguous()"]
        lines += ["q = q.transpose(0, 1).contiguous()"] * (reading.query == "(B, T, E)" and not reading.without_query)
    if reading.without_query:  # the same for every query, with a gradient of 0
        lines += [
            f"out = {called}",
            "if not isinstance(out, _torch.Tensor):",
            "    return out",
            *["out = self.batch_first(out, k)"] * (reading.order == "time" and reading.returns_weights),
            "if out.numel() != len(values) * out.shape[-1] and out.shape[-1:] != (1,):",
            "    raise ValueError(f'it returned {tuple(out.shape)} for a sequence')",
            "out = out.reshape(len(values), 1, -1)",
            *["out = out @ values"] * reading.returns_weights,
        ]
        return [*lines, "return out.expand(-1, q.shape[1], -1) + 0 * q.sum(-1, keepdim=True)"]
    each = _each_query(reading.query, "q")
    if not each:
        lines += [f"out = {called}", "if not isinstance(out, _torch.Tensor):", "    return out"]
        lines += ["out = out.transpose(0, 1)"] * (reading.order == "time" and not reading.returns_weights)
        lines += ["out = out @ values"] * reading.returns_weights
        return [*lines, "return out"]
    lines += [
        f"outs = [{called} for q in {each}]",
        "if not all(isinstance(out, _torch.Tensor) for out in outs):",
        "    return outs[0]",
        *["outs = [self.batch_first(out, k) for out in outs]"] * (reading.order == "time" and reading.returns_weights),
        "if any(out.numel() != len(values) * out.shape[-1] for out in outs if out.shape[-1:] != (1,)):",
        "    raise ValueError(f'it returned {tuple(outs[0].shape)} for one query')",
        "outs = [out.reshape(len(values), -1) for out in outs]",
    ]
    lines += ["outs = [(out[:, None] @ values)[:, 0] for out in outs]"] * reading.returns_weights
    return [*lines, "return _torch.stack(outs, 1)"]
