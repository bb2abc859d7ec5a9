"""The function of an adapter that builds the code's own module, and the arguments of its call."""

from __future__ import annotations

from attn_kata.readings.candidates import gates, lazy, positions, unregistered
from attn_kata.readings.reading import Reading

BUILDER = "build_theirs"


def builder(reading: Reading) -> str:
    """The function that builds the code's own module."""
    given: dict[str, list[str]] = {}
    for name, value in reading.build:
        whole, _, part = name.partition(".")
        given.setdefault(whole, []).append(f"{part}={_size(value)}" if part else _size(value))
    configs = {name.partition(".")[0] for name, _ in reading.build if "." in name}
    arguments = ", ".join(
        f"{name}=_Config(_class=_class_of({name!r}), {', '.join(values)})" if name in configs else f"{name}={values[0]}"
        for name, values in given.items()
    )
    lines = [f"def {BUILDER}(E=8, H=1, D=8, C=8, p=0.0, I=8, V=8, L=256, G=1, M=8):"]
    if reading.globals:
        lines.append("    known = _theirs.__init__.__globals__")
        lines.append(f"    sizes = dict({', '.join(globals_with_values(reading))})")
        lines.append("    _inspect.unwrap(_theirs.forward).__globals__.update(sizes)")
    lines += positions.lines_before(reading.unturned) if reading.unturned else []
    lines += positions.angle_lines(reading.angles, built=False) if reading.angles else []
    before, after = [], []
    if reading.off:  # while it is built there is no ready-made attention, so that the code makes what it needs without
        before.append("ready = _nn.functional.__dict__.pop('scaled_dot_product_attention', None)")
        after.append("_nn.functional.scaled_dot_product_attention = ready")
    if reading.lazy:
        of_lazy = lazy.lines(reading.lazy)
        before += of_lazy[0]
        after += of_lazy[1]
    if reading.bypassed:  # norms are left out, and the groups of this one may not divide the width
        before.append("norm, _nn.GroupNorm = _nn.GroupNorm, lambda *given, **named: _nn.Identity()")
        after.append("_nn.GroupNorm = norm")
    made = f"theirs = _theirs({arguments})"
    if reading.constants:  # what the constructor sets these attributes to is ignored
        sizes = ", ".join(f"{name}=property(lambda self: {value}, _ignored)" for name, value in reading.constants)
        lines.append("    def _ignored(self, number): pass")
        made = f"theirs = type(_theirs.__name__, (_theirs,), dict({sizes}))({arguments})"
    lines += [f"    {line}" for line in before]
    lines += ["    try:", f"        {made}", "    finally:"] if before else [f"    {made}"]
    lines += [f"        {line}" for line in after]
    lines += unregistered.lines(reading.registered) if reading.registered else []
    lines += [f"    theirs.{name} = False" for name in reading.off]
    lines += positions.build_lines(reading.unturned) if reading.unturned else []
    lines += gates.lines(reading.gates) if reading.gates else []
    lines += positions.angle_lines(reading.angles, built=True) if reading.angles else []
    if reading.bypassed:
        lines += [
            "    for path, _ in reversed(list(theirs.named_modules())):",
            "        owner, _, name = path.rpartition('.')",
            "        starred = '.'.join('*' if part.isdecimal() else part for part in path.split('.'))",
            f"        if path in {reading.bypassed!r} or starred in {reading.bypassed!r}:",
            "            theirs.get_submodule(owner)._modules[name] = _Same(theirs.get_submodule(path))",
        ]
    if reading.rates:
        lines += [
            "    for path, part in theirs.named_modules():",
            "        starred = '.'.join('*' if name.isdecimal() else name for name in path.split('.'))",
            f"        if {{path, starred, '*.' + path.rpartition('.')[2]}} & {set(reading.rates)!r}:",
            "            part.p = p",
        ]
    if reading.own_rate:  # nothing but eval() turns it off
        lines += ["    theirs.eval()", "    theirs.train = lambda mode=True: theirs"]
    if reading.before:
        method, *names = reading.before
        lines += [
            "    forward = theirs.forward",
            "    def after(*given, **named):",
            f"        theirs.{method}(**{{name: named.pop(name) for name in {tuple(names)!r} if name in named}})",
            "        return forward(*given, **named)",
            "    theirs.forward = after",
        ]
    if reading.unrounded:
        lines += ["    theirs.forward = _unrounded(theirs.forward)"]
    if reading.full_precision:
        lines += ["    theirs.forward = _in_full(theirs.forward)"]
    if reading.processor:
        lines += ["    theirs.forward = _on_processor(theirs.forward)"]
    if reading.globals:
        lines.append('    theirs.__dict__["sizes_at_module_level"] = sizes')
    lines.append("    return theirs")
    text = "".join(f"\n\n\n{each}" for each in [_SAME] * bool(reading.bypassed) + ["\n".join(lines) + "\n"])
    around = ["_in_full"] * reading.full_precision + ["_on_processor"] * reading.processor
    return text + "".join(f"\n\n{BUILDER} = {each}({BUILDER})\n" for each in around)


_SAME = '''
class _Same(_nn.Identity):
    """In the place of a module that is left out: what it is given, or as much of it as the module returns."""

    def __init__(self, module):
        super().__init__()
        self.left_out = (module,)

    def forward(self, *given, **named):
        given += tuple(named.values())
        if isinstance(self.left_out[0], _nn.RNNBase):  # its outputs, and its last state
            return given[0], None
        if len(given) < 2:
            return given[0]
        returned = self.left_out[0](*given[: len(given) - len(named)], **named)
        return given[: len(returned)] if isinstance(returned, tuple) else given[0]

    def __getattr__(self, name):  # self.dropout.p
        if name.startswith("_") or name not in vars(self.__dict__["left_out"][0]):
            return super().__getattr__(name)
        return 0.0 if name == "p" else getattr(self.left_out[0], name)
'''.strip()


def globals_with_values(reading: Reading) -> list[str]:
    """The names at module level with their values; a config object answers what it is not told as the code's own does."""
    plain = [f"{name}={_size(value)}" for name, value in reading.globals if "." not in name]
    asked: dict[str, list[str]] = {}
    for name, value in reading.globals:
        whole, dot, part = name.partition(".")
        if dot:
            asked.setdefault(whole, []).append(f"{part}={_size(value)}")
    return plain + [
        f"{whole}=_Config(_own=known.get('{whole}'), {', '.join(values)})" for whole, values in asked.items()
    ]


def _size(value: str) -> str:
    if value == "config":
        return "_Config"
    if value == "module":
        return "_Caller()"
    if value == "logger":  # which says nothing
        return "__import__('logging').Logger('theirs', 100)"
    return (
        value.replace("sqrt(D)", "_math.sqrt(D)")
        .replace("nothing_dropped", "_nn.Identity()")
        .replace("no_turn", "_NoTurn()")
        .replace("linear", "_nn.Linear(E, E)")
    )


def arguments(reading: Reading) -> str:
    """The arguments of the call of the code."""
    no_mask = {"mask": "None", "masked": "False"} if reading.mask == "none" else {"masked": "mask is not None"}
    given = [
        (name, {"qkv": "(x, x, x)", "no_tokens": "x[:, :0]", **no_mask}.get(value, value))
        for name, value in reading.call
    ]
    return ", ".join(f"{name}={_size(value)}" for name, value in given)
