"""The functions of an adapter for a rotation: they turn q and k by the code, at the positions of the contract."""

from __future__ import annotations

from attn_kata.readings.candidates import rotations
from attn_kata.readings.reading import Pairs, Reading

_HEAD = """

def _at(table, positions):
    \"\"\"The rows of a table at positions (T,).\"\"\"
    if isinstance(table, (tuple, list)):
        return tuple(_at(part, positions) for part in table)
    axis = max(range(table.dim()), key=lambda axis: table.shape[axis])
    return table.to(positions.device).index_select(axis, positions)


def _turned(q, k, positions, base):
    \"\"\"q and k (B, H, T, D), positions (T,) or (B, T): both turned by the code.\"\"\"
    B, H, T, D = q.shape
"""


def source(reading: Reading) -> str:
    """The adapter's functions: `apply_rope`, and `rope_attention` with the scores of the kata around it."""
    lines = ["L, device, dtype = max(int(positions.max()), D) + 1, q.device, q.dtype"]
    of_caller = reading.table.removesuffix("_of_sample")
    lines += ["order = _torch.cat([_torch.arange(0, D, 2), _torch.arange(1, D, 2)]).to(q.device)"]
    if reading.pairs == "halves":
        lines += ["q, k = q[..., order], k[..., order]"]
    if rotations.numbers_tokens(reading):
        lines += [
            "there = positions.expand(B, T).reshape(-1, 1) == _torch.arange(L, device=q.device)",
            "there = there[:, None, :, None]",
            "q, k = (part.transpose(1, 2).reshape(B * T, H, 1, D) * there for part in (q, k))",
        ]
    if reading.is_class:
        lines += [f"turn = _theirs({_text(reading.build)})"]
        lines += ["turn = turn.to(q.device) if hasattr(turn, 'to') else turn if callable(turn) else turn.forward"]
    else:
        lines += ["turn = _theirs"]
    if reading.table:
        if reading.table_build or _is_module(reading):
            lines += [f"make = {reading.table}({_text(reading.table_build)}).to(q.device)"]
        elif of_caller not in rotations.TABLES_OF_CALLER:
            lines += [f"make = {reading.table}"]
        lines += [
            "places = _torch.arange(L, device=q.device)",
            "places_of_sample = places[None]",
            "like = q.new_zeros(1).expand(1, L, L, D)  # as long as the table, in either layout",
        ]
        if of_caller in rotations.TABLES_OF_CALLER:
            angles = "_torch.outer(places.to(kind), base ** -(_torch.arange(0, D, 2, device=q.device).to(kind) / D))"
            lines += ["kind = _torch.promote_types(q.dtype, _torch.float32)", f"angles = {angles}"]
            lines += ["angles = angles[None]"] * (reading.table != of_caller)
            lines += [f"table = {rotations.TABLES_OF_CALLER[of_caller]}"]
        else:
            lines += [f"table = make({_text(reading.table_call)})"]
    table = "table" if reading.table else "None"
    if reading.positions == "(T,)":
        lines += [
            "pairs = [_called(turn, q[n : n + 1], k[n : n + 1], at, base, "
            + f"{table}, L) for n, at in enumerate(positions.expand(B, T))]",
            "q, k = (_torch.cat(parts) for parts in zip(*pairs))",
        ]
    else:
        given = "positions.expand(B, T)" if reading.positions == "(B, T)" else "positions"
        lines += [f"q, k = _called(turn, q, k, {given}, base, {table}, L)"]
    if rotations.numbers_tokens(reading):
        lines += ["q, k = ((part * there).sum(2).reshape(B, T, H, D).transpose(1, 2) for part in (q, k))"]
    if reading.pairs == "halves":
        lines += ["q, k = q[..., order.argsort()], k[..., order.argsort()]"]
    body = "".join(f"    {line}\n" for line in [*lines, "return q, k"])
    entries = _ENTRIES
    if reading.float32:
        entries = _ENTRIES.replace(
            "(x, x, positions, base)[0]", "(x.float(), x.float(), positions, base)[0].to(x.dtype)"
        )
        entries = entries.replace("= _turned(q, k, positions, 10000.0)", _NARROW)
    return _call_lines(reading) + _HEAD + body + entries


def _is_module(reading: Reading) -> bool:
    return any(value == "like" for _, value in reading.table_call)


def _text(pairs: Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)


def _call_lines(reading: Reading) -> str:
    """The call of the code: in its layout, for q and for k."""
    lines = ["B, H, T, D = q.shape", "device = q.device"]
    there, back = "part", "part"
    if reading.dims == 3:
        there, back = "part.flatten(0, 1)", "part.reshape(B, H, T, D)"
        if rotations.takes_positions(reading):
            lines += ["positions = positions.repeat_interleave(H, 0) if positions.dim() == 2 else positions"]
    elif reading.order == "time":
        there = back = "part.transpose(1, 2)"
    lines += [f"q, k = ({there} for part in (q, k))"]
    if reading.table:
        whole = rotations.takes_positions(reading)
        lines += ["turns = table" if whole else "turns = _at(table, positions)"]
        if any(value in ("cos", "sin") for _, value in reading.call):
            lines += ["cos, sin = turns"]
    called = f"turn({_text(reading.call)})"
    if any(value == "k" for _, value in reading.call):
        lines += [f"out = {called}"]
    else:
        lines += [f"out = [{called} for q in (q, k)]"]
    lines += [
        "if len(out) != 2 or not all(isinstance(part, _torch.Tensor) for part in out):",
        "    raise TypeError('one tensor was expected of each that is turned')",
        "if any(part.dtype == _torch.float32 != q.dtype for part in out):",
        "    raise TypeError(f'it returned {out[0].dtype} for {q.dtype}')",
        "if any(part.shape != q.shape for part in out):",
        "    raise TypeError(f'it returned {tuple(out[0].shape)} for {tuple(q.shape)}')",
        f"return [{back} for part in out]",
    ]
    head = "\n\ndef _called(turn, q, k, positions, base, table, L):\n"
    return head + "".join(f"    {line}\n" for line in lines)


_NARROW = "= (part.to(v.dtype) for part in _turned(q.float(), k.float(), positions, 10000.0))"
_ENTRIES = """

def apply_rope(x, positions, base=10000.0):
    return _turned(x, x, positions, base)[0]


def rope_attention(q, k, v, positions):
    q, k = _turned(q, k, positions, 10000.0)
    return (q @ k.transpose(-2, -1) / _math.sqrt(q.shape[-1])).softmax(-1) @ v
"""
