"""Exceptions that are the code's own mistakes however it is read.

A name that nothing sets, or that is set too late, a view that cannot be, the root of a size, a product with keys that
nothing has transposed, layers before `super().__init__()`.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import replace

from attn_kata.diagnosis import own_exceptions, transposed_keys
from attn_kata.diagnosis.lines import without_effect
from attn_kata.properties.failures import Raised
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of, tree_of

# About strides and views, and about how a function of the source is called: no input has a part in them.
_OF_THE_CODE = re.compile(
    r"view size is not compatible with input tensor's size and stride|is a view and is being modified inplace"
)
_USUAL = ("torch", "nn", "F", "math", "np", "einsum", "rearrange", "sqrt", "softmax", "Tensor", "Optional")
_FRACTION = re.compile(
    r"=(?:\s*[\w.]+,)?\s*[\w.]+\s*/\s*(?:self\.)?\w*(?:head|\bh\b|\d)|Linear\([^()\n]*[\w.]\s*/\s*[\w.]"
)
_SIZE = r"\.size\(|\.shape\b|\blen\("
_OF_NUMPY = re.compile(r"\b(?:np|numpy)\.")
_OF_BATCHES = re.compile(r"batch[12] must be a 3D tensor")


def raises(reading: Reading, search: Search, definition: Definition) -> bool:
    """Whether all that the code raises under the reading is certainly its own mistake, in its own lines."""
    text = search.structure.text(definition)
    # Code that takes only as many queries as keys raises for others before it comes to what it raises always.
    may_be_square = search.contract.takes_qkv or not search.contract.is_module
    alike = replace(reading, square=True) if may_be_square else reading
    for one in dict.fromkeys((reading, alike)):
        found = search.exceptions(one, search.unmasked)
        found += search.exceptions(one, search.masked) if one.mask != "none" else []
        if found and all(is_own_mistake(each, text, search.structure) for each in found):
            return True
    return False


_WRITTEN = re.compile(r"(?i)(?:\w+_)?(?:out|output|result|o)(?:_\w+)?")


def returns_nothing(definition: Definition) -> bool:
    """Whether the call of a definition never returns a value nor keeps one; what another class gives it is not known."""
    name = "forward" if definition.is_class else definition.name
    trees = ast.walk(tree_of(definition.text))
    called = [one for one in trees if isinstance(one, ast.FunctionDef) and one.name == name]
    answers = [one for each in called for one in ast.walk(each) if isinstance(one, ast.Return)]
    if any(isinstance(each.body[-1], ast.Raise) for each in called):
        return False
    if any(_WRITTEN.fullmatch(one.name) for one in definition.call):
        return False  # it writes its result where its caller says: solve(Q, K, V, output)
    inside = [one for each in called for one in ast.walk(each) if isinstance(one, ast.Attribute)]
    kept = [one.attr for one in inside if isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == "self"]
    if not all(map(without_effect.is_beside, kept)):
        return False  # self.context = …: its caller takes it from there
    return bool(called) and all(isinstance(one, ast.Return) and one.value is None for one in answers)


def is_own_mistake(raised: Raised, text: str, structure: Structure) -> bool:
    """Whether an exception in lines of the source would be raised however the code is read. `text`: all that it uses."""
    if not raised.frames or own_exceptions.OF_AN_ADAPTER in raised.text:
        return False
    if raised.types[0] == "NameError":
        return _is_never_imported(raised, structure)
    if raised.types[0] == "UnboundLocalError":
        return _is_set_too_late(raised, structure)
    if raised.types[0] == "AttributeError":
        if own_exceptions.TOO_EARLY.search(raised.text) is not None:
            return True
        if own_exceptions.lacks_in_torch(raised.text):
            return True
        if own_exceptions.lacks_parentheses(raised.text, structure.line(raised.frames[-1][0])):
            return True
        lacks = own_exceptions.LACKS.search(raised.text)
        # A name of a tensor, misspelt. What is no tensor's at all was meant for another input.
        if lacks is not None and lacks[1] == "Tensor":
            return lacks[2] not in ("get", "items", "keys") and own_exceptions.misspelt(lacks[2])
        own = lacks is not None and structure.find(lacks[1]) is not None  # and no number that it was built with
        if lacks is not None and own and _is_set_below(lacks[2], raised, structure):
            return True
        return lacks is not None and _is_never_set(lacks[1], lacks[2], text, structure)
    if raised.types[0] == "TypeError" and own_exceptions.hands_on(structure.line(raised.frames[-1][0])):
        return False
    made = re.match(r"(\w+)(?:\.__init__)?\(\) ", raised.text)
    if raised.types[0] == "TypeError" and made:
        owners = re.findall(rf"\b(\w+)\.{made[1]}\(", structure.line(raised.frames[-1][0]))
        if not all(structure.imports.get(one, "torch").startswith("torch") for one in (made[1], *owners)):
            return False  # what stands for a layer of another file may take other arguments
    if raised.types[0] == "TypeError":
        root = own_exceptions.ROOT_OF_A_NUMBER.search(raised.text)
        by_itself = (
            own_exceptions.OF_A_CALL,
            own_exceptions.NO_INSTANCE,
            own_exceptions.SIZE_CALLED,
            own_exceptions.NO_TENSOR_JOINED,
        )
        if any(one.search(raised.text) for one in by_itself) or own_exceptions.lacks_a_tensor(raised.text, text):
            return True
        if own_exceptions.names_what_is_not_there(raised.text):  # but NumPy wants arrays, and asks tensors by its names
            return _OF_NUMPY.search(structure.line(raised.frames[-1][0])) is None
        if own_exceptions.OF_A_FRACTION.search(raised.text):  # that no rate was taken for a size, a division must say
            return _FRACTION.search(code_of(text)) is not None
        return root is not None and _is_of_sizes(root[1], text)
    line = structure.line(raised.frames[-1][0])
    if own_exceptions.no_such_dimension(raised.text) or own_exceptions.no_such_pattern(raised.text):
        return True
    if own_exceptions.joins_unexpanded(raised.text, line, code_of(text)):
        return True
    if raised.types[0] != "RuntimeError":
        return False
    return (
        _OF_THE_CODE.search(raised.text) is not None
        or own_exceptions.fills_by_a_difference(raised.text, line)
        or own_exceptions.fills_cache_transposed(raised.text, line)
        or own_exceptions.lacks_repeated_heads(raised.text, line, code_of(text))
        or _is_untransposed(raised, text)
        or transposed_keys.is_wrong(raised.text, line, code_of(text))
        or ("Linear(" in text and own_exceptions.has_keys_as_they_come(raised.text, line, code_of(text)))
        or _is_of_heads(raised, text)
    )


def _is_never_imported(raised: Raised, structure: Structure) -> bool:
    """Whether nothing sets a name that no other file would: a usual one of torch or Python, or one of an input.

    Any other name may be another file's, or come with a `*`.
    """
    found = own_exceptions.UNDEFINED.search(raised.text)
    if found is None or found[1] in structure.imports:
        return False
    if found[1] in _USUAL or (found[1] in structure.never_set and vocabulary.size_of(found[1]) not in (None, "None")):
        return True
    if len(found[1]) > 3 and difflib.get_close_matches(found[1], [*structure.imports, *_USUAL], 1, 0.8):
        return True  # troch
    if "*" in structure.imports:
        return False
    return _is_of_an_input(found[1], raised, structure) or _is_meant_to_be_another(found[1], raised, structure)


_INPUTS = frozenset(("x", "q", "k", "v", "Q", "K", "V", "query", "key", "value", "queries", "keys", "values"))


def _is_of_an_input(name: str, raised: Raised, structure: Structure) -> bool:
    """Whether it is that of an input, or nearly one that the function takes: `mask` of `attn_mask`; and no function itself."""
    line, function = raised.frames[-1]
    around = _around(line, structure)
    if around is None or re.search(rf"\b{name}\(", around.text):
        return False
    called = function.rpartition(".")[2]
    named = [one for one in ast.walk(tree_of(around.text)) if isinstance(one, ast.FunctionDef) and one.name == called]
    taken = {each.arg for one in named for each in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)}
    if "mask" in name.lower() and any(name in each.split("_") for each in taken):
        return True
    if not around.is_class:
        return False  # a piece of a script, which may set its inputs elsewhere
    near = len(name) > 3 and not name.isupper() and difflib.get_close_matches(name, taken, 1, 0.8)
    return name in structure.unset and (name in _INPUTS or bool(near))


_OF_A_FILE = frozenset(("device", "config", "cfg", "args", "opt", "params", "hparams"))  # what a script sets for all


def _is_meant_to_be_another(name: str, raised: Raised, structure: Structure) -> bool:
    """Whether it is the name of an attribute, without its `self.`, or a letter away from a name that the function has."""
    line, function = raised.frames[-1]
    around = _around(line, structure)
    called = function.rpartition(".")[2]
    if around is None or name not in structure.unset or name.isupper() or name in _OF_A_FILE or called == "__init__":
        return False
    if around.is_class and re.search(rf"\bself\.{re.escape(name)}\b[^=\n()]*=(?!=)", code_of(around.text)):
        return True
    first = around.lines[0] - 1  # of the source, before the definition
    known: set[str] = set()
    for one in ast.walk(tree_of(around.text)):
        if isinstance(one, ast.FunctionDef) and one.lineno <= line - first <= (one.end_lineno or 0):
            known |= {
                each.id for each in ast.walk(one) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
            known |= {each.arg for each in ast.walk(one.args) if isinstance(each, ast.arg)}
    letters = len(name)
    return letters > 2 and bool(difflib.get_close_matches(name, known, 1, (letters - 1) / letters - 0.01))


def _is_set_too_late(raised: Raised, structure: Structure) -> bool:
    """Whether nothing sets a local name before the line that raises, or only the first call does: no argument could."""
    found = own_exceptions.UNBOUND.search(raised.text)
    line, _ = raised.frames[-1]
    around = _around(line, structure)
    if found is None or around is None:
        return False
    first = around.lines[0] - 1  # of the source, before the definition
    for function in ast.walk(tree_of(around.text)):
        if isinstance(function, ast.FunctionDef) and function.lineno <= line - first <= (function.end_lineno or 0):
            inside = [one for one in ast.walk(function) if isinstance(one, ast.stmt)]
            loops = [one for one in inside if isinstance(one, (ast.For, ast.While))]
            repeated = any(one.lineno <= line - first <= (one.end_lineno or 0) for one in loops)
            name = found[1] or found[2]
            once = {id(each) for one in inside if _is_for_first_call(one) for each in ast.walk(one)}
            before = [one for one in inside if _sets(one, name) and (one.end_lineno or 0) < line - first]
            return not repeated and all(id(one) in once for one in before)
    return False


def _is_for_first_call(statement: ast.stmt) -> bool:
    """Whether what stands here is done once: `if not self.is_ready:` sets `self.is_ready` itself, and has no other branch."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    asked = re.fullmatch(r"not self\.(\w+)", ast.unparse(statement.test))
    return asked is not None and any(f"self.{asked[1]} = True" == ast.unparse(one) for one in statement.body)


def _around(line: int, structure: Structure) -> Definition | None:
    return next((one for one in structure.definitions if one.lines[0] <= line <= one.lines[1]), None)


def _sets(statement: ast.stmt, name: str) -> bool:
    """Whether this statement itself, and none inside of it, sets the name."""
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    elif isinstance(statement, (ast.For, ast.With)):
        of_with = [one.optional_vars for one in statement.items] if isinstance(statement, ast.With) else []
        targets = [statement.target] if isinstance(statement, ast.For) else [one for one in of_with if one is not None]
    else:
        return False
    return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target))


def _is_set_below(attribute: str, raised: Raised, structure: Structure) -> bool:
    """Whether a constructor uses an attribute above the first line of its class that sets it."""
    line, function = raised.frames[-1]
    around = _around(line, structure)
    if around is None or function.rpartition(".")[2] != "__init__":
        return False
    sets = re.compile(
        rf"\bself\.{re.escape(attribute)}\b[^=\n()]*=(?!=)|[\"']{re.escape(attribute)}[\"']|setattr|__dict__"
    )
    where = [around.lines[0] + place for place, text in enumerate(around.text.split("\n")) if sets.search(text)]
    return bool(where) and min(where) > line and "__getattr__" not in around.text


def _is_of_sizes(root: str, text: str) -> bool:
    """Whether all that the source takes this root of are sizes of tensors, or what is computed from sizes of layers."""
    taken = re.findall(rf"torch\.{root}\(\s*((?:[^()]|\([^()]*\))*)\)", text)
    return bool(taken) and all(_is_size(one.strip().rstrip(","), text) for one in taken)


def _is_size(value: str, text: str) -> bool:
    if re.fullmatch(r"[\w.]+(?:\.size\([^()]*\)|\.shape\[[^\[\]]*\])|len\(\w+\)", value):
        return True
    name = value.removeprefix("self.")
    if not name.isidentifier():
        return False
    own = rf"(?<![\w.]){re.escape(value)}\b"
    if re.search(rf"Linear\((?:[^()]*[,=]\s*)?{own}", text):
        return True  # a layer has as many inputs or outputs
    assigned = re.findall(rf"^[^\S\n]*[^=\n]*{own}[^=\n()]*=(?!=)([^\n]*)$", text, re.MULTILINE)
    return bool(assigned) and all(re.search(rf"{_SIZE}|//", each) for each in assigned)


def _is_untransposed(raised: Raised, text: str) -> bool:
    """Whether the product that raises is of keys that nothing in the source transposes: of layers, or given to a function."""
    products = re.findall(own_exceptions.PRODUCT, text)
    made_here = "Linear(" in text or text.lstrip().startswith("def ")  # or they are what a function is given
    untransposed = len(products) > 1 and made_here and own_exceptions.LAYS_OUT.search(text) is None
    return untransposed and own_exceptions.OF_A_PRODUCT.search(raised.text) is not None


def _is_of_heads(raised: Raised, text: str) -> bool:
    """Whether the product of batches, `bmm`, is given heads: four dimensions, which no view in the source folds to three."""
    views = re.findall(r"\.(?:view|reshape)\(((?:[^()]|\([^()]*\))*)\)", text)
    sizes = [len(re.findall(r",(?![^()]*\))", one)) + 1 for one in views]
    folds = 3 in sizes[: sizes.index(4)] if 4 in sizes else True
    folds = (
        folds
        or re.search(r"flatten|rearrange|squeeze|unbind|\[:, |merge|reshape\(-1|view\(-1|\*", "".join(views))
        is not None
    )
    return not folds and _OF_BATCHES.search(raised.text) is not None


def _is_never_set(name: str, attribute: str, text: str, structure: Structure) -> bool:
    """Whether the class is one of the source, has no base that is not, and nothing in the source sets the attribute."""
    bases = re.search(rf"^class {re.escape(name)}\b(?:\(([^)]*)\))?", text, re.MULTILINE)
    if structure.find(name) is None or bases is None:
        return False
    known = all(
        base.strip() in ("", "object", "Module", "nn.Module", "torch.nn.Module") for base in (bases[1] or "").split(",")
    )
    own = re.escape(attribute)
    of_others = (
        r"(?<!args\.)(?<!config\.)(?<!cfg\.)(?<!params\.)(?<!hparams\.)"  # what is set there is not the module's
    )
    of_class = r"^(?: {1,4}|\t)"  # not a local name in a method
    sets = rf"(?:{of_others}(?<=\.)|{of_class}){own}\b\s*(?::[^=\n]+)?=(?!=)|[\"']{own}[\"']|setattr"
    return known and not _is_method(attribute, text) and re.search(sets, code_of(text), re.MULTILINE) is None


def _is_method(name: str, text: str) -> bool:
    """Whether a function of this name stands in a class, and not in one of its methods. Where that cannot be told, anywhere."""
    try:
        classes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ClassDef)]
    except SyntaxError:
        return re.search(rf"\bdef {re.escape(name)}\b", text) is not None
    return any(isinstance(part, ast.FunctionDef) and part.name == name for one in classes for part in one.body)
