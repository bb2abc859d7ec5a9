"""The names that code about attention usually imports, and what they stand for. For code that came without its imports."""

from __future__ import annotations

_MODULES = {"torch", "math", "copy", "numpy", "einops"}
_FROM = {
    "torch": ("nn", "optim", "Tensor", "einsum"),
    "torch.nn": ("Parameter",),
    "torch.autograd": ("Variable",),
    "typing": ("Optional", "Tuple", "List", "Dict", "Union", "Any", "Callable"),
    "dataclasses": ("dataclass",),
    "einops": ("rearrange",),
}
_AS = {"F": "torch.nn.functional", "np": "numpy"}

# name -> (module, what of it; "" for the module itself)
USUAL_NAMES: dict[str, tuple[str, str]] = {
    **{name: (name, "") for name in sorted(_MODULES)},
    **{name: (module, name) for module, names in _FROM.items() for name in names},
    **{name: (module, "") for name, module in _AS.items()},
}

# Layers of torch.nn that stand for those of the same name, where code takes them from a module that is not installed.
USUAL_LAYERS = ("Linear", "Dropout", "LayerNorm", "RMSNorm", "Embedding", "GELU", "ReLU", "Softmax")

# A function of torch that stands for the one of the same name, where code has its own in a file that is not here.
USUAL_FUNCTION = "softmax"
