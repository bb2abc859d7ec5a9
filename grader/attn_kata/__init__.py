"""attn-kata: practise writing attention, graded property by property."""

__version__ = "0.1.0"
