"""`attn-kata watch`: an attempt graded on every save, on one screen.

`files` detects saves, `grading` grades the last one with a warm engine, `session` holds the state, `screen` renders it,
`terminal` reads keys and draws, and `loop` connects them. Only `loop` waits.
"""
