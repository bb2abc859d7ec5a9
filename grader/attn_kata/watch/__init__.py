"""`attn-kata watch`: an attempt graded on every save, on one screen.

`files` sees saves, `grading` grades the last one on a kept engine, `session` knows what happened, `screen` says it in lines,
`terminal` has the keys and the screen, `loop` connects them. Only `loop` waits.
"""
