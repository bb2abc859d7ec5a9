# An exception text of a megabyte with escape sequences, markup, HTML and nulls.
# outcome: failed
# says: ValueError
def scaled_dot_product_attention(q, k, v):
    raise ValueError("\x1b[2J\x1b]0;title\x07<script>alert(1)</script>[bold red]\0\u202e\ud800]]>" * 20_000)
