"""Supervision: one process that imports torch once, and starts an attempt process and a grader for every grading.

`client` is the face's side and imports no torch. `server` is the engine's process. Where the system can fork, it serves by
`fork_server`, `attempt_pool`, `zygote` and `fork_worker`; elsewhere by `spawn_server` and `spawn_worker`.
"""
