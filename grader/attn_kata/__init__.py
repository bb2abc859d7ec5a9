"""attn-kata: practise writing attention, graded property by property.

The command is `attn-kata`. From Python and in notebooks:

>>> import attn_kata
>>> attn_kata.katas()[0].slug
'sdpa'

`grade` grades one attempt, `Grader` many, `katas` lists what there is, `explain` explains a mistake or a property, and `Report`
is what a grading found. In a notebook, `%load_ext attn_kata` adds the magics `%%kata`, `%kata_start`, `%kata_hint`,
`%kata_explain` and `%kata_solution`. Importing this package loads neither torch nor anything else.
"""

TYPE_CHECKING = False  # type checkers take it for true; `typing` would cost more time than all the rest of this file
if TYPE_CHECKING:
    from attn_kata.api import Grader, Report, explain, grade, katas

__all__ = ["Grader", "Report", "explain", "grade", "katas"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'attn_kata' has no attribute '{name}'")
    from attn_kata import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell):  # type: ignore[no-untyped-def]  # its type is IPython's, which is not imported here
    """`%load_ext attn_kata`."""
    from attn_kata.notebook import magics

    magics.load(shell)


def unload_ipython_extension(shell):  # type: ignore[no-untyped-def]
    """`%unload_ext attn_kata`, and the first half of `%reload_ext attn_kata`."""
    from attn_kata.notebook import magics

    magics.unload(shell)
