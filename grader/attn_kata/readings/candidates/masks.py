"""What a mask means and which shape it has, as far as words and names say it. Behaviour decides what they leave open."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from attn_kata.readings.reading import SHAPES
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import code_of

MOST_QUOTED = 100  # letters of a line
_SET = (
    r"(?:\b1s?\b|\btrue\b|\bones\b|\bnon-?zeros?\b"
    r"|(?<!\b0 )(?<!\bfalse )(?<!\bzero )(?:\bindicat(?:es?|ing)\b|\bmark(?:s|ing)\b))"  # "mask == 0 marks …"
)
_UNSET = r"(?:\b0s?\b|\bfalse\b|\bzeros?\b(?!-| pad))"
_KEPT = (
    r"(?:keep|kept|attend|(?<!never )\bvisible|(?<!in)valid|\ballow|real|un-?masked|not (?:be )?masked|"
    r"not (?:be )?(?:pad|ignored|hidden)|"
    r"\bsee\b(?! (?:also|above|below|code|the (?:code|paper)|http|fig|sec|eq|note))|(?<!never )\bseen|"
    r"participate|tak(?:e|es|ing) part|\bcount|include|(?<!whose )\bused?\b|looked? at|open|"
    r"permit|atiende|atender|válid|valide|visíve|autoris|(?<!nicht )(?:erlaubt|sichtbar)|"
    r"参照|有効|разреш|видим|참조|허용|保留|可见|看到|看见|有效|关注|参与|允许|真实)"
)
_HIDDEN = (
    r"(?:(?<=[=>:] )mask\b(?!\s*\w)|"
    r"masked|masking\b|mask(?:s|ing)? out|\bto mask\b|hide|hidden|invalid|invisible|ignor|block|\bpad|exclude|forbid|"
    r"not (?:to )?(?:be )?(?:allow|attend|visible|seen|valid)|never (?:be )?(?:visible|seen)|unseen|"
    r"removed?|"
    r"bloque|ocult|enmascar|mascarad|masqu|maskier|verdeckt|"
    r"nicht (?:gesehen|sichtbar|erlaubt|beacht)|無視|隠|игнор|скры|замаск|무시|마스킹|"
    r"disallow|may not|cannot|must not|no attention|屏蔽|被 ?mask|掩|遮|填充|忽略|不可见|看不|无效|不参与|不能)"
)
# Between what is said of a flag and the flag, at most this much: one clause.
_NEAR = r"[^.;\n\"']{0,40}?"
_SAYS = r"where|when|if|is|are|(?:indicated|marked|denoted) (?:by|with|as)|equals?(?: to)?|=|:|,|为"
# "real tokens, 0 for padding": the flag belongs to what comes after it.
_ITS_OWN = (
    r"(?!\s*(?:=|:|->|→|表示|代表|(?:for|to|means?|where|if|is|at|on|marks?|indicates?|else|elsewhere|otherwise)\b))"
)
_GIVEN_BEFORE = re.compile(r"(?:=|\b(?:is|are|where|when|if))\s*$")  # "attend where it is 1, ignore …"
_SHAPE = re.compile(
    r"[\[(]\s*[\w#*/+.-]+(?:\s*[,x×]\s*[\w#*/+.-]+(?: [*/+-] [\w.]+)?)+,?\s*[\])]"
)  # (batch, 1, 1, T): its 1 is a size, and no flag
_RESULT = re.compile(
    r"(?<!equal )(?<!equals )\bto (?:be )?(?:0|zero)\b"
)  # "masked weights are set to 0": a weight, no flag
# "1) attention" and "1. attention" count the parts of a block, which is no word for hiding then.
_PARTS = re.compile(
    r"^\s*\d+\.(?=\s)|\b\d+\)|\b(?:encoder|decoder|transformer|attention|residual|feed[- ]?forward|mlp|ffn|building|each"
    r"|this|one|first|second)[ -]blocks?\b"
)
# A sentence of a docstring that goes on in the next line, and no line about another parameter.
_GOES_ON = re.compile(r"(?<=[\w,`)])[ \t]*\n[ \t]*(?=[a-z(`])(?![`*]*\w+[`*]*\s*(?:\([^()\n]*\))?\s*:)")
_NO_PADDING = re.compile(r"\bno[nt][- ]?(?:a )?pad(?:ding|ded|s)?\b")
_ADDED = r"additive(?![ -]*(?:attention|score|energy|model|style))|added to (?:the )?(?:attention )?(?:scores|logits)"
_LEAST = (
    r"(?:float\W{1,3})?(?:-\s*(?:inf|∞|np\.inf|math\.inf|torch\.inf|1e\d|10{3,})|(?:minus|negative) infinity|"
    r"large negative)"
)
# (batch, Tq, Tk): three sizes, the first of which is that of the batch.
_OF_SAMPLES = re.compile(r"(?i)[\[(]\s*(?:b|n|bs|bsz|batch\w*|batch size)\s*[,x×]\s*[\w* ]+[,x×]\s*[\w* ]+\s*[\])]")
_OR = r"(?:or|and|/|,|或|和|、)"
_NOTE = r"(?:\s*\([^()\n]{0,40}\))?"
_OTHERS = (
    r"(?:(?!mask|hid|fill|set\b|ignor|replac|get)[^\n.;=]){0,30}?"  # what has the other number; nothing that is done
)
# What is added: numbers that are 0 and -inf, or what another method has made of a mask before.
_MINUS = (
    r"\b0(?:\.0)? (?:where|for|at|is)[^\n]*(?:-inf|negative|-1e)"
    rf"|(?<![=!<>])(?<![=!<>] )\b0(?:\.0)?{_NOTE}\s*{_OR}\s*{_LEAST}|{_LEAST}{_NOTE}\s*{_OR}\s*0(?:\.0)?\b"
    rf"|{_LEAST} (?:for|where|at)\b[^\n]{{0,30}}\b0(?:\.0)? (?:for|where|at|else|otherwise)\b"
    rf"|(?<![=!<>])(?<![=!<>] )\b0(?:\.0)?\s*(?:=|:|->|means)\s*[^\n.;]{{0,30}}?{_LEAST}"
    rf"|\bwith (?:a )?0(?:\.0)? and {_OTHERS} with (?:an? )?(?:very )?{_LEAST}"
    # "0 for real tokens and -10000 for padding", "0 keep, -inf padding"
    rf"|(?<![=!<>])(?<![=!<>] )\b0(?:\.0)?\s+(?:for|keeps?|kept|at|on)\b{_OTHERS}(?:and|or|,)\s*{_LEAST}(?:\.0)?\s*"
    r"(?:for|elsewhere|otherwise|at|on|where|in|pad|mask|hid|future)"
    # "real=0, padding=large negative"
    rf"|\b(?:real|keep|kept|valid|visible|tokens?|attend|allowed)\s*=\s*0(?:\.0)?\s*(?:,|;|and|or)\s*"
    rf"(?:pad\w*|mask\w*|hid\w*|invalid|ignor\w*|future)\s*=\s*{_LEAST}"
    r"|precomputed for all layers"
)


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to pass a mask: its meaning, its shape and its type."""

    mask: str
    shape: str
    mask_type: str


@dataclass(frozen=True, kw_only=True)
class Said:
    """What words say of True in a mask: keep, hide or additive.

    A hint is what they say without the mask's name: they may speak of something else, so behaviour decides against them.
    """

    meaning: str
    is_hint: bool = False
    words: str = ""  # one line of them


# In a docstring, what is said of one parameter: `use_scaling: …`, and the lines that go on below it.
_TRIPLE = re.compile(r"\"{3}.*?\"{3}|'{3}.*?'{3}", re.DOTALL)
_BEFORE, _BEHIND = r"[ \t]*`{0,2}", r"`{0,2}[ \t]*(?:\([^()\n]*\))?[ \t]*:"
_ENTRY = re.compile(rf"(?m)^{_BEFORE}(\w+){_BEHIND}[ \t]+\S[^\n]*(?:\n(?!{_BEFORE}\w+{_BEHIND})[ \t]+\S[^\n]*)*")
_OF_A_FLAG = re.compile(r"^(?:use|is|with|do|enable|return|need|output|bias|dropout)_?\w*$|_?bias$", re.IGNORECASE)


def _of_masks(entry: re.Match[str]) -> str:
    """An entry of a docstring; nothing where it is that of a flag, whose True is no mask's."""
    return "" if _OF_A_FLAG.search(entry[1]) and "mask" not in entry[1].lower() else entry[0]


# A line that does not name the mask must be about hiding at all: "a matrix of zeros, used in …" is not.
_OF_MASKS = re.compile(
    r"\b(?:un-?)?(?:mask|pad|attend|hid(?:e|den)|ignor|keep|kept|see[ns]?\b|unseen|visib|invisib|allow|disallow|block|valid|invalid|"
    r"real\b|exclud|remov|causal|future)|[^\x00-\x7f]"
)


def documented(text: str, name: str) -> Said | None:
    """What words and names say of a mask; None where they do not say it, or say both.

    `text` is the source of the attention with its comments, and `name` what its call names the mask.
    """
    plain = vocabulary.plain(name)
    if plain in vocabulary.KEEPS:
        return Said(meaning="keep")
    if plain in vocabulary.HIDES:
        return Said(meaning="hide")
    every = _words(_TRIPLE.sub(lambda found: _ENTRY.sub(_of_masks, found[0]), text)).split("\n")
    about = [line for line in every if name.lower() in line]
    others = [line for line in every if _OF_MASKS.search(line)]
    for lines, is_hint in ((about, False), (others, True)):
        meaning = _meaning("\n".join(lines))
        if meaning == "additive" and (_is_taken_from_1(text, name) or _is_compared(text, name)):
            return None
        if meaning is not None:
            words = next((line.strip() for line in lines if _meaning(line) == meaning), "")
            return Said(meaning=meaning, is_hint=is_hint, words=textwrap.shorten(words, MOST_QUOTED, placeholder=" …"))
    return None


def documented_for_samples(text: str, name: str) -> str | None:
    """The shape (B, Tq, Tk), without heads, that the words beside `forward` say of a mask, as they say it; or None."""
    forward = text.rpartition("def forward(")[2]
    for line in re.findall(
        rf"(?:^\s*(?::param\s+)?|#\s*){re.escape(name)}\b\s*(?:\([^)\n]*\)\s*)?[:：].*$", forward, re.MULTILINE
    ):
        shape = _OF_SAMPLES.search(line)
        if shape is not None:
            return shape[0]
    return None


def _is_taken_from_1(text: str, name: str) -> bool:
    """Whether the code computes 1 - mask: of flags, never of what is added to the scores."""
    return re.search(rf"\b1(?:\.0?)?\s*-\s*{re.escape(name)}\b", text) is not None


def _is_compared(text: str, name: str) -> bool:
    """Whether the code asks where the mask is 0 or 1, or fills by it: of flags, never of what is added to the scores."""
    own = rf"\b{re.escape(name)}(?:\[[^\]\n]*\]|\.(?!logical|eq\b|bool\b)\w+\([^()\n]*\))*"
    asks = rf"{own}\s*[=!]=\s*(?:0|1|False|True)\b|~\s*{own}|{own}\.(?:logical_not|eq|bool)\("
    fills = rf"\b(?:masked_fill_?|where)\(\s*{own}\s*,"
    return re.search(f"{asks}|{fills}", code_of(text)) is not None


def _meaning(words: str) -> str | None:
    if re.search(_MINUS, words):
        return "additive"
    keep = _says(words, _SET, _KEPT, _HIDDEN) or _says(words, _UNSET, _HIDDEN, _KEPT)
    hide = _says(words, _SET, _HIDDEN, _KEPT) or _says(words, _UNSET, _KEPT, _HIDDEN)
    if keep != hide:
        return "keep" if keep else "hide"
    return "additive" if re.search(_ADDED, words) and not keep else None


def _says(words: str, flag: str, what: str, other: str) -> bool:
    """Whether a clause says `what` of the flag, and nothing of the other before it."""
    for pattern in (
        rf"{flag}{_NEAR}({what})",
        rf"({what}){_NEAR}(?:{_SAYS})\s*{flag}{_ITS_OWN}",
    ):
        for found in re.finditer(pattern, words):
            clause = found[0]
            if re.search(_UNSET if flag is _SET else _SET, clause):
                continue  # of two flags: "1 for words, 0 for padding"
            if "," in clause and _GIVEN_BEFORE.search(words[: found.start()]):
                continue
            longer = words[found.start() : found.end() + 12]
            if what is _HIDDEN and re.search(rf"not (?:be )?{re.escape(found[1])}", clause):
                continue
            if re.search(other, clause) is None or (what is _HIDDEN and re.search(r"not|不|may not", longer)):
                return True
    return False


def _words(text: str) -> str:
    """The comments and strings of a source, in lower case."""
    comments = re.findall(r"#([^\n]*)", text)
    strings = [part for three in re.findall(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', text, re.DOTALL) for part in three]
    strings += [part for part in re.findall(r'"([^"\n]*)"', text) if " " in part]
    strings = [_GOES_ON.sub(" ", one) for one in strings]
    text = re.sub(r"(?<![\d.])([01])\.0\b", r"\1", "\n".join([*comments, *strings]).lower())  # 1.0 is a 1, and no 0
    lines = text.split("\n")
    kept = (line for line in lines if "nan" not in line)  # about rows with nothing to attend to
    kept = (_PARTS.sub(" ", _SHAPE.sub(" ", _NO_PADDING.sub("real", line))) for line in kept)
    return "\n".join(_RESULT.sub(" ", line) for line in kept)


def forms(text: str, name: str, said: str | None, hint: str | None = None) -> Iterator[Form]:
    """The ways to pass a mask, the likeliest first. What is documented is the only meaning, and a hint the first one."""
    if vocabulary.is_lengths(name):
        yield Form(mask="lengths", shape="any", mask_type="bool")
    meanings = [said] if said in ("keep", "hide", "additive") else ["keep", "hide", "additive"]
    takes_bool = re.search(rf"{re.escape(name)}\.dtype\s*==\s*torch\.bool", text)  # and adds the others
    if said is None and re.search(rf"\+=?\s*{re.escape(name)}\b", text) and not takes_bool:
        meanings = ["additive", "keep", "hide"]
    elif said is None and re.search(rf"masked_fill_?\(\s*{re.escape(name)}\b[^=<!]*,", text):
        meanings = ["hide", "keep", "additive"]
    types = ("bool", "int", "float")
    if _is_taken_from_1(text, name):
        types = ("float", "bool", "int")
        meanings = [one for one in meanings if one != "additive" or said == one]
    meanings.sort(key=lambda one: one != hint)
    for shape in _shapes(text, name):
        for meaning in meanings:
            for kind in ("bool",) if meaning == "additive" else types:
                yield Form(mask=meaning, shape=shape, mask_type=kind)


def _shapes(text: str, name: str) -> list[str]:
    """The shapes of a mask: first those to which the source adds as many dimensions as it does, then the most general."""
    added = len(re.findall(rf"{re.escape(name)}(?:\.\w+\([^()]*\))*\.unsqueeze\(", text))
    added += text.count(f"{name}.unsqueeze(") and len(
        re.findall(rf"{re.escape(name)}\.unsqueeze\([^()]*\)\.unsqueeze\(", text)
    )
    added = max([added, *(index.count("None") for index in re.findall(rf"{re.escape(name)}\[([^\]]*)\]", text))])
    likely = {0: ["any"], 1: ["(B, T, T)", "(B, 1, T)"]}.get(added, ["(B, T)"])
    if added == 0 and "pad" in name.lower():
        likely = ["(B, T)", "any"]
    every = [*likely, *(shape for shape in SHAPES if shape not in likely)]
    is_cut = re.search(rf"\b{re.escape(name)}\.tri[lu]_?\(|\btri[lu]\(\s*{re.escape(name)}\b", text)
    if is_cut and not re.search(r"[,x×]\s*1\s*[,x×]\s*\w+\s*[\])]", text):  # nothing says that it is (B, 1, T)
        every = [shape for shape in every if "T, T" in shape]  # a triangle is cut out of it: one for each query
    # A mask of another number of dimensions than those that the source asks for may be passed over.
    own = re.escape(name)
    asked = re.finditer(rf"(?:\b{own}\.(?:dim\(\)|ndim)|len\({own}\.shape\))\s*==\s*(\d)", text)
    widened = rf"\b{own}\s*=\s*{own}\.unsqueeze\("  # before it is asked
    squeezed = re.compile(rf"\s*:\s*{own}\s*=\s*{own}\.squeeze\(")  # (B, T, 1) is one more way to say (B, T)
    ranks = {
        int(one[1]) - len(re.findall(widened, text[: one.start()])) - bool(squeezed.match(text, one.end()))
        for one in asked
    }
    return [shape for shape in every if not ranks or shape == "any" or shape.count(",") + 1 in ranks]
