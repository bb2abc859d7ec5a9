"""What there is to practise, and what the words of a report mean."""

from __future__ import annotations

from dataclasses import dataclass

from attn_kata import catalog


@dataclass(frozen=True, kw_only=True)
class Kata:
    """One kata: its name for `grade`, its title, its level (1 and up), the minutes that it takes, and one sentence about it."""

    slug: str
    title: str
    level: int
    minutes: int
    summary: str


class Katas(tuple[Kata, ...]):
    """Katas, shown as a table."""

    def __repr__(self) -> str:
        longest = max((len(kata.slug) for kata in self), default=0)
        return "\n".join(
            f"{kata.slug:<{longest}}  level {kata.level}  {kata.minutes:>3} min  {kata.summary}" for kata in self
        )


class Explanation(str):
    """A text that shows itself with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


def katas() -> Katas:
    """Every kata, in the order to practise them: by level, then the shorter first.

    >>> import attn_kata
    >>> attn_kata.katas()[0].title
    'Scaled dot-product attention'
    """
    return Katas(
        Kata(slug=kata.slug, title=kata.title, level=kata.level, minutes=kata.minutes, summary=kata.summary)
        for kata in catalog.katas()
    )


def explain(name: str = "") -> Explanation:
    """What a mistake or a property is, why it matters, and how to see it, as text. Without a name, a list of all mistakes.

    Raises an error with the nearest name if there is no such mistake or property.

    >>> import attn_kata
    >>> print(attn_kata.explain("scale.embed_dim").splitlines()[0])
    scale.embed_dim: Scores divided by the root of the whole width
    """
    from attn_kata.cli.explain import explained

    return Explanation(explained(name, as_json=False))
