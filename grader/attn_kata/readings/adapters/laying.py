"""The lines of an adapter that make the contract's own layers, and lay their weights into the code's parameters."""

from __future__ import annotations

from dataclasses import replace

from attn_kata.readings.contract import Contract, LayerOf
from attn_kata.readings.reading import ROLES, Layer, Reading


def layers(contract: Contract) -> list[str]:
    """The contract's own layers, with the names by which weights are copied in."""
    lines = []
    heads = [one for one in contract.layers.values() if ".*." in one.name]
    for one in contract.layers.values():
        made = (
            f"_nn.Linear({one.inputs}, {one.outputs}, bias={contract.bias})"
            if one.inputs != "norm"
            else f"_nn.LayerNorm({one.outputs})"
        )
        owner = one.name.rpartition(".")[0]
        if owner and one not in heads and f"self.{owner} = _nn.Module()" not in lines:
            lines.append(f"self.{owner} = _nn.Module()")
        if one not in heads:
            lines.append(f"self.{one.name} = {made}")
    if heads:
        group = heads[0].name.partition(".")[0]
        each = ", ".join(
            f'"{one.name.rpartition(".")[2]}": _nn.Linear({one.inputs}, {one.outputs}, bias={contract.bias})'
            for one in heads
        )
        lines.append(f"self.{group} = _nn.ModuleList(_nn.ModuleDict({{{each}}}) for _ in range(H))")
    return lines


def laid(reading: Reading, contract: Contract) -> list[str]:
    lines = []
    roles = _roles(contract)
    names = {}
    for role, one in roles.items():
        weight, bias = _own(role, one, contract)
        lines.append(f"{role}_weight, {role}_bias = {weight}, {bias}")
        names[role] = role
    if reading.v.layout == "score":  # v (Wq q + Wk k), without what is between: one vector for both
        both = ", ".join(f"v_weight @ {role}_weight" for role in reading.fused)
        path, bias = reading.v.weight, reading.v.bias
        flat = "" if path.endswith(".weight") else ".flatten()"
        lines.append(f'laid = {{"{path}": _torch.cat([{both}], 1){flat}}}')
        return [*lines, *[f'laid["{bias}"] = v_bias'] * bool(bias), "return laid"]
    lines.append("laid = {}")
    done: set[str] = set()
    for role in names:
        layer = reading.layer(role)
        if not layer.weight or layer.weight in done:
            continue
        shared = [other for other in reading.fused if reading.layer(other).weight == layer.weight] or [role]
        done.add(layer.weight)
        groups = "G" if contract.has_groups else "H"
        lines += _one(layer, shared, reading.arrangement, layer.layout, ".weight", groups)
        for bias in dict.fromkeys(reading.layer(other).bias for other in shared):
            of_bias = [other for other in shared if reading.layer(other).bias == bias]
            if bias and contract.has_score and "v" not in contract.layers and layer.layout == "columns":
                # The layer is the query's, qᵀ W k, and so is its bias, which the contract does not have.
                lines.append(f'laid["{bias}"] = {role}_weight.new_zeros({role}_weight.shape[1])')
            elif bias:
                lines += _one(replace(layer, bias=bias), of_bias, reading.arrangement, layer.layout, ".bias", groups)
    if reading.mlp_gate.weight:  # both have the weights of the one that the contract has: act(h) * h
        gate = reading.mlp_gate
        for what in (".weight", ".bias") if gate.bias else (".weight",):
            lines += _one(gate, ["mlp_in"], reading.arrangement, gate.layout, what, "H")
    if (
        contract.has_score and "q" not in contract.layers and reading.q.weight
    ):  # a product of two layers: this one is the identity
        lines += [
            f'shape = self.shapes_of_theirs["{reading.q.weight}"]',
            f'laid["{reading.q.weight}"] = _torch.eye(*shape, dtype=k_weight.dtype, device=k_weight.device)',
            *[f'laid["{reading.q.bias}"] = k_weight.new_zeros(shape[0])'] * bool(reading.q.bias),
        ]
    lines.append("return laid")
    return lines


def _roles(contract: Contract) -> dict[str, LayerOf]:
    if "qkv" in contract.layers:
        return dict.fromkeys(("q", "k", "v"), contract.layers["qkv"])
    return {role: one for role, one in contract.layers.items() if role in ROLES}


def _own(role: str, one: LayerOf, contract: Contract) -> tuple[str, str]:
    """The contract's weight (out, in) and bias (out,) of a role."""
    if "qkv" in contract.layers:
        place = ("q", "k", "v").index(role)
        return f"self.{one.name}.weight.chunk(3)[{place}]", f"self.{one.name}.bias.chunk(3)[{place}]"
    if ".*." in one.name:
        group, _, name = one.name.partition(".*.")
        weight = f'_torch.cat([head["{name}"].weight for head in self.{group}])'
        return weight, f"{weight}.new_zeros(({weight}).shape[0])"
    bias = (
        f"self.{one.name}.bias"
        if contract.bias
        else f"self.{one.name}.weight.new_zeros(self.{one.name}.weight.shape[0])"
    )
    return f"self.{one.name}.weight", bias


def _one(layer: Layer, roles: list[str], arrangement: str, layout: str, what: str, groups: str) -> list[str]:
    """The lines that lay one parameter, of one role or of several in their order. By head, each of `groups` has its own."""
    path = layer.weight if what == ".weight" else layer.bias
    parts = [f"{role}_{what[1:]}" for role in roles]
    if layout == "wide" and roles != ["o"]:
        parts = [_of_wide_heads(part, role, layer, len(roles)) for part, role in zip(parts, roles, strict=True)]
    if ".*" in path:
        before, after = path.split(".*", 1)
        wanted = [f"{part}.unflatten(0, (H, -1))[h]" for part in parts]
        if layout == "slices" and what == ".weight":
            wanted = [f"{part}.unflatten(1, (H, -1))[:, h]" for part in wanted]
        together = ", ".join(wanted)
        value = wanted[0] if len(wanted) == 1 else f"_torch.cat([{together}])"
        if len(wanted) > 1 and arrangement == "innermost":
            value = f"_torch.stack([{together}], 1).flatten(0, 1)"
        value = f"({value}).T" if layout == "columns" and what == ".weight" else value
        return ["for h in range(H):", f'    laid[f"{before}.{{h}}{after}"] = {value}']
    if len(parts) == 1:
        value = parts[0]
    elif arrangement == "by_head":
        value = f"_torch.cat([part.unflatten(0, ({groups}, -1)) for part in ({', '.join(parts)})], 1).flatten(0, 1)"
    elif arrangement == "beside":
        value = f"_torch.cat([{', '.join(parts)}], 1)" if what == ".weight" else parts[0]
    elif arrangement == "innermost":
        value = f"_torch.stack([{', '.join(parts)}], 1).flatten(0, 1)"
    elif arrangement == "features":
        of_heads = ", ".join(f"{part}.unflatten(0, (H, -1))" for part in parts)
        value = f"_torch.stack([{of_heads}], 1).transpose(0, 2).flatten(0, 2)"  # (H, 3, D, …) to (D, 3, H, …)
    else:
        value = f"_torch.cat([{', '.join(parts)}])"
    if layout == "wider":
        value = f'_wider({value}, self.shapes_of_theirs["{path}"])'
    elif what == ".weight":
        value = _stored(value, layer, layout, roles[0])
    elif layout == "shared":
        value = f"{value}[: {value}.shape[0] // H]"
    elif layout in ("heads", "heads_columns", "columns_heads") and roles != ["o"]:
        value = f"{value}.unflatten(0, (H, -1))"
    return [f'laid["{path}"] = {value}']


# The scores of wider heads are divided by a larger root: q makes up for it.
WIDE = '''

def _wide(value, H, width, is_query=False):
    """The rows of each head (D, ...), and then rows of 0 for what a head of this width has more."""
    each = value.unflatten(0, (H, -1))  # (H, D, ...)
    zeros = each.new_zeros((H, width - each.shape[1], *each.shape[2:]))
    factor = (width / each.shape[1]) ** 0.5 if is_query else 1.0
    return _torch.cat([each, zeros], 1).flatten(0, 1) * factor
'''


# What is 0 there adds nothing: h is 0, and so is what it is multiplied by.
WIDER = '''

def _wider(value, shape):
    """A weight or bias of an mlp, with zeros for what the code has more."""
    if any(own < given for own, given in zip(shape, value.shape)):
        raise RuntimeError(f"its mlp is {tuple(shape)}, which has no room for {tuple(value.shape)}")
    whole = value.new_zeros(shape)
    whole[tuple(map(slice, value.shape))] = value
    return whole
'''


def _of_wide_heads(value: str, role: str, layer: Layer, count: int) -> str:
    """A weight or bias of q, k or v for heads that are wider than the contract's. `count`: the roles that share the layer."""
    rows = f'self.shapes_of_theirs["{layer.weight.replace(".*", ".0")}"][0]'
    width = rows if ".*" in layer.weight else f"{rows} // {f'({count} * H)' if count > 1 else 'H'}"
    return f"_wide({value}, H, {width}{', is_query=True' if role == 'q' else ''})"


def _stored(value: str, layer: Layer, layout: str, role: str) -> str:
    """A weight (out, in) as the code stores it."""
    of_heads = {"heads": "(H, D, in)", "heads_columns": "(H, in, D)", "columns_heads": "(in, H, D)"}
    if layout == "columns":
        return f"{value}.T"
    if layout in ("left", "right"):  # the other half is for what lies beside the heads' result, as x does
        halves = (value, f"_torch.zeros_like({value})")
        return f"_torch.cat([{', '.join(halves if layout == 'left' else halves[::-1])}], 1)"
    if layout == "vector":
        return f"{value}.flatten()"
    if layout == "conv":
        return f"{value}.unsqueeze(-1)"
    if layout == "wide":  # those of q, k and v have been widened
        return f'_wide({value}.T, H, self.shapes_of_theirs["{layer.weight}"][1] // H).T' if role == "o" else value
    if layout == "shared":  # the layer of the first head, for all of them
        return f"{value}[: {value}.shape[0] // H, : {value}.shape[1] // H]"
    if layout not in of_heads:
        return value
    if role == "o":  # its inputs are the heads'
        return {
            "heads": f"{value}.T.unflatten(0, (H, -1))",  # (H, D, out)
            "heads_columns": f"{value}.unflatten(1, (H, -1)).transpose(0, 1)",  # (H, out, D)
            "columns_heads": f"{value}.unflatten(1, (H, -1))",  # (out, H, D)
        }[layout]
    return {
        "heads": f"{value}.unflatten(0, (H, -1))",
        "heads_columns": f"{value}.unflatten(0, (H, -1)).transpose(1, 2)",
        "columns_heads": f"{value}.T.unflatten(1, (H, -1))",
    }[layout]
