"""Rotary positions inside of code whose contract has none: they are switched off. Caches are emptied before each call."""

from __future__ import annotations

import re

from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of

# What a parameter of a call gets, so that nothing is turned: angles of 0, and positions of 0.
_GIVEN = {
    "turns": "freqscis freqs freqcis poscis freqscomplex ropefreqs freqsciscomplex freqscisfull rotaryfreqs rotfreqs "
    "complexfreqs "
    "freq freqscisq ropecis frequencies freqscomplexform",
    "cos": "cos freqscos coscached freqcos roto cosines",
    "sin": "sin freqssin sincached freqsin sines",
    "angles": "positionembeddings ropeembeddings cossin rotarypositionembeddings rope ropecache rotaryposemb positionembedding",
    "0": "startpos startposition offset pos startindex currpos curpos",
}
GIVEN = {name: value for value, names in _GIVEN.items() for name in names.split()}
# A line of an adapter, and what is in its place where the code is to turn.
ANGLES_OF_0 = "angle = places"
ANGLES = "angle = places + (_torch.arange(places.shape[0], dtype=places.dtype){first})[:, None]"
NO_TURN = "no_turn"  # what a constructor gets that must be given a rotation
_TURNS = re.compile(r"rot(?:ary|ate|or)|(?<![pu])rope|rotemb", re.IGNORECASE)
_SAYS_IT_TURNS = re.compile(r"(?i)(?:^|_)(?:rot|rope)")
_ANGLES = re.compile(r"freqs?_?cis|theta|sinusoid|angles", re.IGNORECASE)
_TABLES = re.compile(r"half|precompute|freq|build|init|every|get_|make|cache|create|compute", re.IGNORECASE)

# Angles as a pair of tables, as what is called for them, and as what is called to turn q and k.
TABLES = '''

class _Angles(tuple):
    """The tables (cos, sin). Called with vectors it gives them back, and called with a length itself."""

    def __call__(self, *given, **named):
        vectors = [one for one in (*given, *named.values()) if isinstance(one, _torch.Tensor) and one.is_floating_point()]
        vectors = [one for one in vectors if one.dim() > 2][:2]
        return self if not vectors else vectors[0] if len(vectors) == 1 else tuple(vectors)
'''

# What takes the place of a rotation.
UNTURNED = '''

def _unturned(turn):
    """In the place of a rotation: q and k as they are, or x."""
    import functools
    import inspect

    if type(turn).__name__ == "_NoTurn":  # of this adapter, or of an earlier one
        return turn
    try:
        names = list(inspect.signature(turn).parameters)
    except ValueError:  # compiled: @torch.jit.script
        names = [one.name for one in inspect.unwrap(turn).schema.arguments]
    pair = len(names) > 1 and names[1].lower().lstrip("x").startswith("k")

    @functools.wraps(turn)
    def unturned(*given, **named):
        both = [*given, *named.values()]
        return (both[0], both[1]) if pair else both[0]

    return unturned


def _unturned_class(made):
    """In the place of a class that turns."""
    return _left_out(made, _NoTurn())
'''

# The lines of an adapter that the rest of it calls.
HEAD = (
    UNTURNED
    + '''

def _of_any_size(table):
    """What makes angles, for any size of a head and without positions: nothing is turned by them.

    What it raises for other reasons is raised.
    """
    import functools

    @functools.wraps(getattr(table, "__wrapped__", table))
    def of_any_size(*given, **named):
        values = [*given, *named.values()]
        try:
            return table(*given, **named)
        except Exception as raised:
            of_the_call = any(f"() {words} " in str(raised) for words in ("got", "missing", "takes"))
            if of_the_call or isinstance(raised, NameError):
                raise
            if any(one is None for one in values):
                return _NoTurn()
            if not any(type(one) is int and one % 2 for one in values):
                raise
        even = [one + one % 2 if type(one) is int else one for one in given]
        return table(*even, **{name: one + one % 2 if type(one) is int else one for name, one in named.items()})

    return of_any_size


def _left_out(made, stand_in):
    """What stands for a class, which it keeps."""
    vars(stand_in)["made"] = _made(made)
    return stand_in


def _made(made):
    """The class for which something stands, or what it is given."""
    return made if isinstance(made, type) else vars(made).get("made", made)


class _NoTurn:
    """In the place of a rotation whose import is missing: what it is given, q and k both where both are given."""

    def __call__(self, *given, **named):
        both = [*given, *named.values()]
        vectors = [one for one in both if isinstance(one, _torch.Tensor) and one.is_floating_point() and one.dim() > 2]
        if not vectors:  # it is made, or asked for its angles
            return self
        tables = len(both) == 3 and getattr(both[1], "shape", 1) == getattr(both[2], "shape", 2)  # x, cos, sin
        pair = len(vectors) > 1 and vectors[1] is both[1] and vectors[0].shape[0] == vectors[1].shape[0] and not tables
        return (both[0], both[1]) if pair else vectors[0]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, place):
        return self

    def __iter__(self):  # cos, sin = rope(length)
        return iter((self, self))
'''
)


# Two tensors that have the name of positions are cos and sin: pos_embd: tuple[Tensor, Tensor].
_TWO = re.compile(r"[Tt]uple\[\s*(?:torch\.)?Tensor\s*,\s*(?:torch\.)?Tensor\s*\]")
_OF_POSITIONS = re.compile(r"(?:^|_)(?:pos|rot|rope|freq)", re.IGNORECASE)


def given(name: str, *, needed: bool = False, annotation: str = "") -> str | None:
    """What a parameter of the call gets that has to do with positions, or None. `needed`: whether it has no default."""
    is_pair = _TWO.search(annotation) is not None and _OF_POSITIONS.search(name) is not None
    of_turns = "angles" if is_pair or (needed and _TURNS.search(name)) else None
    return GIVEN.get(vocabulary.plain(name)) or of_turns


def is_rotation(name: str) -> bool:
    """Whether a name says that it is what turns q and k: `rope`, `rotary_emb`."""
    return _TURNS.search(name) is not None


def unturned(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The functions, methods and submodules by which the code turns q and k."""
    reach = structure.reach(definition)
    functions = [one for one in reach if not one.is_class and _turns(one)]
    found = [one.name for one in functions if any(user.is_class and user.uses(one) for user in reach)]
    for path, made, _ in structure.parts(definition):
        inner = structure.find(made)
        if inner is not None and "softmax(" in code_of(inner.text):  # an attention inside, with a method that turns
            found += [f"{path}.{name}" for name in _methods(inner) if _SAYS_IT_TURNS.search(name)]
        elif inner is not None and _TURNS.search(made) and _turns(inner):
            found.append(path)
        elif inner is not None and _TURNS.search(made):  # a table with a method that turns
            found += [f"{path}.{name}" for name in _methods(inner)]
    found += _methods(definition)
    text = structure.text(definition)
    found += [path for path, made, _ in structure.parts(definition) if _is_bias_table(path, made)]
    for one in reach:  # RoPE.apply_rotary_emb(xq, xk, freqs)
        ways = [f"{one.name}.{name}" for name in _static_methods(one)] if one.is_class and one is not definition else []
        found += [way for way in ways if f"{way}(" in text]
    imported = [name for name in structure.imports if _TURNS.search(name) and not _TABLES.search(name)]
    found += [name for name in imported if re.search(rf"\b{re.escape(name)}\(", text)]
    return tuple(dict.fromkeys(found))


# A learned bias of the scores for each distance of two tokens, in a window (Swin) or a sequence (T5): 0 for all of them.
BIAS_NOT_GRADED = (
    "Its bias for each distance of two tokens is 0 here: how it is found, and where it is added, is not graded"
)
# Also one vector for each distance, by which the bias of a query is found: Er (Huang et al., 2018), rel_pos_h.
_NAME_OF_BIAS = re.compile(
    r"(?i)\w*rel\w*_?(?:pos|att)\w*bias\w*|rel\w*_bias(?:es)?|pos\w*_bias(?:es)?"
    r"|(?-i:Er|E_r|E_rel)|rel(?:ative)?_?(?:pos(?:ition)?\w*|emb\w*|dist\w*)"
)
_TABLES_OF_BIASES = ("Parameter", "Embedding")


def _is_bias_table(path: str, made: str) -> bool:
    """Whether what is made at a path is a table of biases: `relative_position_bias_table`, an embedding of distances."""
    of_tables = made.rpartition(".")[2] in _TABLES_OF_BIASES
    return of_tables and "*" not in path and _NAME_OF_BIAS.fullmatch(path.rpartition(".")[2]) is not None


def bias_tables(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of what is switched off that are a bias of the scores for each distance of two tokens."""
    return tuple(name for name in names if _NAME_OF_BIAS.fullmatch(name.rpartition(".")[2]))


def is_off(path: str, unturned: tuple[str, ...]) -> bool:
    """Whether a parameter is such a table, which is 0."""
    return path in unturned or path.removesuffix(".weight") in unturned


def makers(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The classes of the source that turn q and k, or make the angles: their constructors may want an even size of heads."""
    return tuple(
        one.name
        for one in structure.reach(definition)
        if one.is_class and one is not definition and _TURNS.search(one.name) and "softmax" not in one.text
    )


def angles(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The functions and submodules that make angles, and turn nothing themselves: a size or positions may be wrong for them."""
    functions = [one for one in structure.reach(definition) if not one.is_class and not _turns(one)]
    made = [
        one.name
        for one in functions
        if _ANGLES.search(one.name) or (_TURNS.search(one.name) and _TABLES.search(one.name))
    ]
    for path, maker, _ in structure.parts(definition):
        inner = structure.find(maker)
        if inner is not None and _TURNS.search(maker) and not _turns(inner):
            made.append(path)
    text = structure.text(definition)
    tables = [one for one in structure.imports if _ANGLES.search(one) or (_TURNS.search(one) and _TABLES.search(one))]
    made += [one for one in tables if re.search(rf"\b{re.escape(one)}\(", text)]
    return tuple(dict.fromkeys(made))


def _methods(one: Definition) -> list[str]:
    """The methods of a class that turn what they are given."""
    defined = re.findall(r"def (\w+)\(\s*self,\s*([^)]*)\)", one.text)
    return [name for name, given in defined if given and _TURNS.search(name) and not _TABLES.search(name)]


def _static_methods(one: Definition) -> list[str]:
    """The static methods of a class that turn what they are given."""
    defined = re.findall(r"@staticmethod\s+def (\w+)\(\s*(\w+)([^,)]*)", one.text)
    of_vectors = [name for name, first, said in defined if vocabulary.size_of(first) is None and "int" not in said]
    turning = _TURNS.search(one.name) is not None  # Rotary.apply(x, cos, sin)
    return [name for name in of_vectors if (turning or _TURNS.search(name)) and not _TABLES.search(name)]


def _turns(one: Definition) -> bool:
    """Whether it takes vectors and gives them back, and is no table of angles."""
    takes_angles = any(GIVEN.get(vocabulary.plain(each.name), "0") != "0" for each in one.call)
    if not _TURNS.search(one.name) or (not one.is_class and _TABLES.search(one.name) and not takes_angles):
        return False
    inputs = [vocabulary.input_of(parameter.name) or parameter.name for parameter in one.call]
    tables = any(
        {"cos", "sin"} <= {re.sub(r"[^a-z]|emb|cached", "", name.lower()) for name in names} for names in one.returned
    )
    tables |= re.search(r"return\b[^\n=*]*\bcos\b[^\n=*]*,[^\n=*]*\bsin\b", one.text) is not None
    return bool(inputs) and not tables and re.search(r"\bint\b", one.call[0].annotation) is None


def caches(definition: Definition) -> tuple[str, ...]:
    """The attributes in which the code keeps keys and values from call to call, where the call says where they begin."""
    if not any(given(parameter.name) == "0" and parameter.default is None for parameter in definition.call):
        return ()
    return tuple(dict.fromkeys(stored(definition)))


def stored(definition: Definition) -> list[str]:
    """The attributes that have the name of a cache, and are tensors of zeros from the beginning."""
    names = re.findall(r"self\.(\w*cache\w*)\s*(?::[^=\n]*)?=\s*\(?\s*torch\.(?:zeros|empty)", definition.text)
    names += re.findall(r"register_buffer\(\s*[\"'](\w*cache\w*)[\"']", definition.text)
    return list(names)


def lines_before(names: tuple[str, ...]) -> list[str]:
    """The lines of an adapter's builder that put something in the place of rotations: of missing ones, and of classes."""
    return [
        "    known = _inspect.unwrap(_theirs.forward).__globals__",
        f"    for name in {names!r}:",
        "        if type(known.get(name)).__name__ == 'Missing':",
        "            known[name] = _NoTurn()",
        "        elif name in known and isinstance(_made(known[name]), type):",
        "            known[name] = _unturned_class(known[name])",
    ]


def angle_lines(names: tuple[str, ...], *, built: bool) -> list[str]:
    """The lines of an adapter's builder that let functions, or submodules that are `built`, make angles for any size."""
    if built:
        return [
            "    for path, part in theirs.named_modules():",
            f"        if '.'.join('*' if one.isdecimal() else one for one in path.split('.')) in {names!r}:",
            "            part.forward = _of_any_size(part.forward)",
        ]
    return [
        "    known = _inspect.unwrap(_theirs.forward).__globals__",
        f"    for name in {names!r}:",
        "        if type(known.get(name)).__name__ == 'Missing':",
        "            known[name] = _NoTurn()",
        "        elif callable(known.get(name)):",
        "            known[name] = _of_any_size(known[name])",
    ]


def build_lines(names: tuple[str, ...]) -> list[str]:
    """The lines of an adapter's builder that switch rotations off."""
    return [
        f"    for name in {names!r}:",
        "        table = theirs",
        "        for step in name.split('.'):",
        "            table = getattr(table, step, None)",
        "        table = table.weight if isinstance(table, _nn.Embedding) else table",
        "        if isinstance(table, _nn.Parameter):",
        "            _nn.init.zeros_(table)",
        "            continue",
        "        parts = [part for path, part in theirs.named_modules() if path",
        "                 and name == '.'.join('*' if one.isdecimal() else one for one in path.split('.'))]",
        "        for part in parts:",
        "            part.forward = _unturned(part.forward)",
        "        if not parts and callable(getattr(theirs, name, None)):",
        "            setattr(theirs, name, _unturned(getattr(theirs, name)))",
        "        elif not parts and callable(known.get(name)) and type(known[name]).__name__ != '_NoTurn':",
        "            known[name] = _unturned(known[name])",
        "        owner, _, last = name.rpartition('.')",
        "        if isinstance(known.get(owner), type) and hasattr(known[owner], last):",
        "            setattr(known[owner], last, staticmethod(_unturned(getattr(known[owner], last))))",
        "        for path, part in theirs.named_modules() if owner and not parts else ():",
        "            if owner == '.'.join('*' if one.isdecimal() else one for one in path.split('.')) and hasattr(part, last):",
        "                setattr(part, last, _unturned(getattr(part, last)))",
    ]


def call_lines(pairs: tuple[tuple[str, str], ...], caches: tuple[str, ...], x: str) -> list[str]:
    """The lines of an adapter's forward that make angles of 0, and forget what an earlier call has left."""
    lines = [
        f"for name in {caches!r}:",
        "    if isinstance(getattr(self.theirs, name, None), _torch.Tensor):",
        f"        kept = _torch.zeros_like(getattr(self.theirs, name), dtype={x}.dtype, device={x}.device)",
        "        setattr(self.theirs, name, kept)",
    ] * bool(caches)
    values = " ".join(value for _, value in pairs)
    if re.search(r"\b(?:turns|cos|sin|angles)\b", values):
        lines += [
            f"places = {x}.detach().new_zeros({x}.shape[-2], {x}.shape[-1] // H)",
            ANGLES_OF_0,
            "cos, sin, turns = angle.cos(), angle.sin(), _torch.polar(_torch.ones_like(angle), angle)[:, ::2]",
            *(["angles = _Angles((cos, sin))"] if "angles" in values else []),
        ]
    return lines
