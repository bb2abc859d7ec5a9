"""What runs beside the candidate's code: load it, call it, record what runs, block what is forbidden.

Nothing here knows an answer. It imports nothing of ours but `protocol` and `sandbox`.
"""
