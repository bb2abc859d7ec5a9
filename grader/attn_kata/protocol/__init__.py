"""The messages between the processes of a grading, the bytes that carry them, and the checks on replies.

`messages` defines every message as a dataclass. `channel` carries messages between trusted processes (face, engine, grading).
`wire` carries requests to the attempt process and its replies, with their tensors. Replies are not trusted; `replies` checks
that a reply fits its request.
"""
