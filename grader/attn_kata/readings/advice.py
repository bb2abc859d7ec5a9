"""What to do where code by other names could not be read, by what it raised or how it ended."""

from __future__ import annotations

import re

UNREAD = "it could not be read as"  # the beginning of what is said
NOT_IMPORTED = "could not be imported"
NOT_FITTING = re.compile(r"has the shape \(.*\bis wanted|layers do not fit one another", re.DOTALL)
RAISES_WITH_MASK = "every call that was tried with a mask raises"
RAISES_FOR_SOME = "it raises for some of what it is asked"
SAY = "Name the class with --class NAME, or say how to read it with --read KEY=VALUE (--read help lists the keys)"

# The first that is found in what was tried. What a stranger's code says is only looked at.
_ADVICE = tuple(
    (re.compile(words), advice)
    for words, advice in (
        (
            r"(?i)\bcuda\b|\bnvidia\b|\bhip\b",
            "The grader has no GPU: make the code run on the CPU, without .cuda() or .to('cuda')",
        ),
        (
            r"FileNotFoundError|PermissionError|IsADirectoryError|No such file|(?:URL|HTTP|Connection|SSL)Error|"
            r"name resolution|(?i:hugging ?face|from_pretrained)",
            "The grader has no files of yours and no network: take out what loads weights, a tokenizer or data",
        ),
        (
            r"(?i)out of memory|MemoryError|can't allocate",
            "Let it build something smaller: give small sizes with --read build=NAME=VALUE,NAME=VALUE",
        ),
        (r"no answer within", "Take out what runs so long, or name another class with --class NAME"),
        (r"\bEOFError\b", "The grader gives no keyboard input: remove input()"),
        (r"has no forward, and", "Call it forward"),
        (r"has no __init__", "Write __init__, with two underscores on each side"),
        (
            r"\bNameError\b|name '\w+' is not defined",
            "Put what sets or imports that name into the file. If it is a size, --read globals=NAME=E says it (E is the "
            "width, H the heads, L a length)",
        ),
        (
            NOT_FITTING.pattern,
            "If its sizes are read wrong, say how it is built with --read build=NAME=E,NAME=H,NAME=D (E is the width, H the "
            "heads, D the size of a head). Otherwise correct the size of this layer, or of the one before it",
        ),
        (
            r"'(?!NoneType|Missing)[A-Z]\w*' object has no attribute "
            r"'(?:d_|n_|num_|\w*(?:dim|size|head|width|model|emb|hidden))\w*'",
            "If another file sets this attribute, say its size with --read constants=NAME=E (E is the width, H the heads, D "
            "the size of a head). Otherwise set it in the class",
        ),
        (r"has no submodule '", "Name one that it has, or leave --read bypassed out"),
        (r"its heads are not merged", "Merge the heads, or name the class that does so with --class NAME"),
        (r"returned None", "Return the result from the call"),
        (
            RAISES_WITH_MASK,
            "Leave its mask out with --read mask=none. Or say what its mask means with --mask keep, hide or additive, and "
            "say its shape, for example with --read 'shape=(B, T)'",
        ),
        (
            r"every call that was tried.*(?:cannot be multiplied|is invalid for input|must match|[Ss]ize mismatch)",
            "Its sizes or layers may be read wrong: say how it is built with --read build=NAME=E,NAME=H,NAME=D (E is the "
            "width, H the heads, D the size of a head), or how it is called with --read call=NAME=x,NAME=mask (--read help "
            "lists the keys)",
        ),
        (
            r"it seems to (?:attend|be another kind)",
            "If the code does not take that path, take the path out of it, and grade what is left",
        ),
        (
            r"every call that was tried",
            "Say how it is called with --read call=NAME=x,NAME=mask. NAME is a parameter name, and None leaves a parameter "
            "out; NAME=zeros(B,T,E) gives it zeros of this shape. For a learned score, use NAME=q,NAME=k. Code that needs an "
            "earlier call, for example to fill a cache, cannot be graded this way",
        ),
        (
            r"\) raises \w|it takes no sizes",
            "Say how it is built with --read build=NAME=E,NAME=H (E is the width, H the heads), or name another class with "
            "--class NAME",
        ),
        (r"it has no parameter '", "Name one that it has, as in --read q=NAME or --read gates=NAME"),
        (r"do not say which are q, k and v", "Say it with --read q=NAME --read k=NAME --read v=NAME"),
        (r"returns a (?:new )?vector for each token", "Name another class with --class NAME"),
        (r"positions inside", "Take the positions out of the attention, and grade what is left"),
        (r"cut in another way", "Say how with --read fused=by_head:q,k,v (or innermost:q,k,v, or features:q,k,v)"),
        (r"raises for some", "Grade it without that condition, or name another class with --class NAME"),
        (r"how many heads", "Say it with --read build=NAME=H, or --read one_head=yes"),
        (r"do not say how it is to be built", "Say it with --read build=NAME=E,NAME=H (E is the width, H the heads)"),
    )
)


def on(tried: str) -> str:
    """What to do after what was tried, in a sentence without a full stop."""
    return next((advice for words, advice in _ADVICE if words.search(tried)), SAY)


def unset_name(why: str) -> str:
    """The name that nothing has set, where that is why code could not be read; else ""."""
    found = re.search(r"raises NameError: name '(\w+)' is not defined", why)
    return "" if found is None else found[1]
