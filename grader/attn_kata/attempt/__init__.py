"""The attempt process: it loads the candidate's code, calls it, records its operations, and blocks the forbidden ones.

Nothing here knows an answer. Of attn-kata, it imports only `protocol` and `sandbox`.
"""
