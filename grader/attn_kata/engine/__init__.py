"""The engine: one process that imports torch once and forks, per grading, an attempt child and a grader child.

`client` is the face's side and never imports torch. `server` is the engine process. `executor` and `child` run in the
attempt child, `remote` and `grading` in the grader child. `wire` is what passes between those two: checked bytes.
`isolation` is what stands between the attempt and the machine.
"""
