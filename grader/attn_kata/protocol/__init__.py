"""What passes between the processes of a grading: typed messages, the bytes that carry them, and the checks on replies.

`messages` has every message as a value. `channel` carries those between trusted processes (face, engine, grading).
`wire` carries requests to the attempt's process and replies from it, with their tensors; replies are not trusted.
"""
