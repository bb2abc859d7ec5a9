"""How the dimensions of what code takes and gives are laid out, as its source says: time first, images, heads behind tokens."""

from __future__ import annotations

import re

from attn_kata.readings.source.structure import Definition, Structure, code_of

_OF_IMAGES = re.compile(
    r"\b(?:b|n|bs|bsz|batch\w*|_)\s*,\s*(?:c|ch\w*|(?:in_|n_)?channels?|feat\w*|\w*dim|d|e)\s*,\s*(?:h|h\w*|ht)\s*,\s*(?:w|w\w*)\b"
    r"|\bb c h w\b|\bConv2d\(",
    re.IGNORECASE,
)
# einops: rearrange(x, "b p n (h d) -> b p h n d")
_OF_GROUPS = re.compile(r"[\"']\s*(\w+) (\w+) (\w+) \(\s*(\w+) (\w+)\s*\)\s*->\s*\1 \2 \4 \3 \5\s*[\"']")


def has_groups(definition: Definition, structure: Structure) -> bool:
    """Whether the code splits the heads of several sequences for each sample: the patches of an image (MobileViT)."""
    return _OF_GROUPS.search(structure.reached(definition)) is not None


def four_sizes(definition: Definition) -> bool:
    """Whether the code takes the shape of an input of its call apart in four: `B, H, W, C = x.shape`."""
    inputs = "|".join(re.escape(one.name) for one in definition.call)
    taken = rf"(?m)^\s*\(?\w+(?:\s*,\s*\w+){{3}}\)?\s*=\s*(?:{inputs})\.(?:shape|size\(\))\s*$"
    return bool(inputs) and re.search(taken, code_of(definition.reached)) is not None


_PLACES = re.compile(r"l$|l_|len|seq|t$|t_|time|n_?(?:points|tokens)$")


def channels_first(definition: Definition, structure: Structure) -> str:
    """The order in which the channels come before the places, where sizes or convolutions say so: image, channels, or ""."""
    text = structure.reached(definition)
    if _OF_IMAGES.search(text):
        return "image"
    of_places = any(
        len(sizes) == 3 and _axis(sizes[0]) == "batch" and _axis(sizes[1]) == "" and _PLACES.match(sizes[2].lower())
        for sizes in definition.sizes
    )
    return "channels" if of_places or re.search(r"\bConv1d\(", text) else ""


def joins_heads(definition: Definition) -> bool:
    """Whether a function takes heads, and ends with lines that lay them side by side: (B, H, T, D) to (B, T, H D)."""
    code = code_of(definition.text)
    after = re.split(r"softmax", code)[-1]
    turned = r"(?:transpose\(\s*-?[12]\s*,\s*-?[123]\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1\s*,\s*3)"
    size = r"(?:[^(),]|\([^()]*\))+"
    joined = rf"{turned}[\s\S]*?(?:\.flatten\(\s*-?2|(?:view|reshape)\({size},{size},{size},?\s*\))"
    by_einops = r"rearrange\([^\n]*[\"']\s*\w+ (\w+) (\w+) (\w+)\s*->\s*\w+ \2 \(\s*\1 \3\s*\)"
    return not definition.is_class and re.search(f"{joined}|{by_einops}", after, re.IGNORECASE) is not None


_OF_THREE = re.compile(r"\bq(?:uery|ueries)?\b[^\n]*[\[(]\s*\w*b\w*\s*,\s*\w+\s*,\s*\w+\s*[\])]", re.IGNORECASE)


def says_three(definition: Definition) -> bool:
    """Whether its words say that queries are (batch, length, size), and it looks how many dimensions its mask has."""
    by_rank = re.search(r"mask\w*\.(?:dim\(\)|ndim)", code_of(definition.text)) is not None
    return by_rank and _OF_THREE.search(definition.text) is not None


def turns_heads(definition: Definition) -> bool:
    """Whether a function ends with lines that put the heads behind the tokens: (B, H, T, D) to (B, T, H, D)."""
    after = re.split(r"softmax", code_of(definition.text))[-1]
    turned = r"transpose\(\s*(?:1\s*,\s*2|-3\s*,\s*-2|-2\s*,\s*-3)\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1\s*,\s*3"
    return not definition.is_class and re.search(turned, after) is not None


def has_heads_third(definition: Definition) -> bool:
    """Whether a function may take (B, T, H, D): it exchanges the second and third dimension, or an einsum does."""
    code = code_of(definition.text)
    for one in re.findall(r"einsum\(\s*[\"']([^\"']+)[\"']", code):
        given, _, result = re.sub(r"\s", "", one).partition("->")
        first = given.partition(",")[0]
        if len(first) == len(result) == 4 and (first[1], first[2]) == (result[2], result[1]):
            return True
    return re.search(r"transpose\(\s*1\s*,\s*2\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1", code) is not None


def time_first_anywhere(definition: Definition, structure: Structure) -> bool | None:
    """What the source of a definition says, or else what those say that it uses, where they agree."""
    own = time_first(definition)
    if own is not None:
        return own
    said = {time_first(one) for one in structure.reach(definition)} - {None}
    return said.pop() if len(said) == 1 else None


def time_first(definition: Definition) -> bool | None:
    """Whether the source says that time comes before the batch: in the names of sizes, or in words. None: it says nothing."""
    for names in definition.sizes:
        said = [_axis(name) for name in names[:2]]
        if said == ["time", "batch"]:
            return True
        if said == ["batch", "time"]:
            return False
    time = r"(?:t|time|seq(?:uence)?(?:_?len(?:gth)?)?|[a-z]*_?len|l|n)"
    batch = r"(?:b|batch(?:_?size)?|bsz|n)"
    words = rf"time[ -]first|time x batch|[(\[]\s*{time}\s*[,x×*]\s*{batch}\s*[,x×*]"
    if "batch_first" in definition.text:
        return False
    if re.search(words, definition.text, re.IGNORECASE):
        return True
    batch_first = rf"batch[ -]first|[(\[]\s*{batch}\s*[,x×*]\s*{time}\b"
    batch_first += r"|\b(?:b|bs|bsz|batch\w*)\b[^\n]*=[^\n]*(?:size\(0\)|shape\[0\])"
    return False if re.search(batch_first, definition.text, re.IGNORECASE) else None


def _axis(name: str) -> str:
    plain = name.lower().strip("_")
    if re.fullmatch(r"b|bs|bsz|batch|batch_?size|nbatches|n_?batch|bz|num_?batch(?:es)?", plain):
        return "batch"
    return (
        "time"
        if re.fullmatch(r"t|l|len|length|seq|seq_?len(?:gth)?|tgt_len|src_len|q_?len|len_q|sl|time|s|steps", plain)
        else ""
    )


# Shapes in comments and docstrings: of one sequence, and of a batch.
_LENGTH = r"(?:[tnsl]|tq|tk|seq\w*|len\w*|\w*_len\w*|\w*tokens?|num_\w+)"
_ONE_SEQUENCE = re.compile(
    rf"(?:#.*|\"\"\"[^\"]*)[(\[]\s*{_LENGTH}\s*,\s*(?!{_LENGTH}\s*[)\]])[a-z]\w*\s*[)\]]", re.IGNORECASE
)
_BATCH = re.compile(r"batch|\bb\s*,\s*\w+\s*,|\(\s*b\s*,", re.I)


def says_one_sequence(text: str) -> bool:
    """Whether the shapes in a source's words are those of one sequence, `(T, E)`, and never those of a batch."""
    return _ONE_SEQUENCE.search(text) is not None and _BATCH.search(text) is None


def speaks_of_batch(definition: Definition) -> bool:
    """Whether a comment behind a line that reads an input of the call has a shape of a batch: `k.size(-1)  # (B, T, d_k)`."""
    inputs = "|".join(re.escape(one.name) for one in definition.call)
    said = rf"(?m)^[^#\n]*\b(?:{inputs})\b[^#\n]*#[^\n]*{_SHAPE_OF_BATCH}"
    return bool(inputs) and re.search(said, definition.text, re.IGNORECASE) is not None


_SHAPE_OF_BATCH = r"[\[(]\s*(?:b|bs|bsz|n?_?batch\w*)\s*,\s*[\w *]+\s*,\s*[\w *]+\s*[\])]"


def says_batch(definition: Definition) -> bool:
    """Whether a docstring says of an input of the call that it is (batch, length, size), and none speaks of one sequence."""
    words = "\n".join(re.findall(r"\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''", definition.text))
    inputs = "|".join(re.escape(one.name) for one in definition.call)
    said = rf"^[\s\"']*(?::param\s+)?`*(?:{inputs})\b`*\s*(?:\([^()\n]*\)\s*)?:[^\n]*{_SHAPE_OF_BATCH}"
    of_one = re.search(r"(?i)one sequence|single sequence|no batch|without (?:a )?batch|\bnot\b", words) is not None
    found = bool(inputs) and re.search(said, words, re.IGNORECASE | re.MULTILINE) is not None
    return found and not of_one and _ONE_SEQUENCE.search(definition.text) is None


def times_narrower(width: str, definition: Definition) -> int:
    """How many times as wide as the queries an image is: of Conv2d(width, width // 8, 1) 8 times. 0 where nothing says."""
    code = code_of(definition.text)
    own, divided = rf"(?:self\.)?{re.escape(width)}", r"\s*//\s*(?:self\.)?(\w+)"
    named = re.findall(rf"(?m)^\s*([\w.]+)\s*=\s*{own}{divided}\s*$", code)  # inner = width // 8
    narrow = "|".join([rf"{own}{divided}", *(rf"{re.escape(name)}\b()" for name, _ in named)])
    found = re.search(rf"\bConv[12]d\([^()]*?\b{own}\s*,\s*(?:\w+\s*=\s*)?(?:{narrow})", code)
    said = "" if found is None else next(filter(None, found.groups()), named[0][1] if named else "")
    default = next((one.default for one in definition.build if one.name == said), None)
    number = default or said
    return int(number) if number.isdecimal() and 1 < int(number) < 100 else 0
