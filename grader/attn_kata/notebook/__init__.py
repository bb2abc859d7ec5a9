"""A face for IPython: the magics of `%load_ext attn_kata`, and the report inside the cell. Imports no torch.

Only this room imports IPython, which is in the extra `[notebook]`.
"""
