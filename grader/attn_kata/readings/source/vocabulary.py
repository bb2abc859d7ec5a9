"""What names mean in attention code: sizes of a constructor, layers, inputs of a call, masks."""

from __future__ import annotations

import re

# Sizes of a constructor or a config, by the symbol of the reading. Names are compared in lower case, without underscores.
_SIZES: dict[str, str] = {
    "H": "头数 注意力头数 "
    "numheads nheads nhead heads h head numattentionheads nattentionheads attentionheads headnum numhead headcount nh "
    "nheadsq numselfattentionheads multihead multiheads numqheads nqheads numqueryheads numsqueryhead numshead nq "
    "numq",
    "G": "numkvheads numkeyvalueheads nkvheads nkvhead kvheads numkvhead nlocalkvheads numskeyvaluehead numgroups "
    "ngroups groups "
    "numquerygroups nquerygroups nkv numkv kvheadnum kvhead numkvhead g groupnum kvnumheads kvnheads numheadskv nheadskv "
    "headskv "
    "nheadkv numkeyvaluehead",
    "H//G": "numkvgroups nkvgroups numkeyvaluegroups nrep groupsize headspergroup queriesperkv numqueriesperkv qperkv numrep "
    "nreps kvgroups",
    "M": "ff ffn mlp "
    "mlpdim dff hiddensizeff ffdim dimfeedforward ffndim ffhidden intermediatesize ninner ffsize dimff mlphidden pfdim dinner "
    "ffnhidden "
    "feedforwarddim ffwdim mlpwidth filtersize innersize ffhiddensize ffnhiddensize ffnsize hiddendimff ffnhiddendim dmlp "
    "nff "
    "dimfeedforwardlayer ffhiddendim mlphiddendim ffnembeddim mlpsize ffinner dimmlp feedforwardsize ffnnum dffn nmlp "
    "dhidden "
    "ffninnerdim decoderffnembeddim encoderffnembeddim ffndimension ffnnumhiddens",
    "1e-5": "eps layernormeps layernormepsilon normeps lneps layernormeps epsilon",
    "16": "maxbatchsize maxbatch maxbsz batchsize bsz",
    "D": "头维度 "
    "headdim dk dv dq dimhead dhead headsize dkey dvalue keydim valuedim attentionheadsize dimperhead dimheads headdims "
    "keysize valuesize dval dimk dimv dimq dqk headwidth headfeatures perheaddim attentionheaddim dimkey dimvalue hdim hs "
    "headchannels dimkeys dimvalues dimqueries keysdim valuesdim queriesdim "
    "qkdim dimqk qkvdim hiddensizeperattentionhead kvchannels dh sizeperhead widthperhead headd headlen singleheadd hd",
    "E": "宽度 维度 隐藏维度 模型维度 "
    "embeddim dmodel hiddensize nembd dim embsize embedsize embdim hiddendim modeldim din dout dimin dimout inputdim "
    "infeatures features channels numhiddens hiddenunits embeddingdim hiddim dimmodel d nstate width nx indim outdim outputdim "
    "innerdim queryindim qdim querydim querysize embed emb modelsize inputsize outputsize hidden hid embeddingsize dembed "
    "demb ninp nhid inchannels outchannels dimension dimembedding units model n_model nmodel size nfeatures edim e c "
    "ind outd dm nfeat dinput doutput "
    "outfeatures totaldim nunits hiddenfeatures tokendim attentiondim attndim attndim dattn projdim dimq latentdim nhidden "
    "featuredim kdim vdim dimembed nembed modeldimension nin nout dimensions xdim channel",
    "C": "contextdim contextsize crossattentiondim memorydim encoderdim kvdim dimcontext contextembeddim encdim dimkv "
    "encoderhiddensize dcontext dencoder ctxdim crossdim kvindim dcross sourcedim totensorwidth",
    "p": "丢弃率 dropout p dropoutrate attndropout drop dropoutp attnpdrop dropoutprob attentiondropout attndrop "
    "attentionprobsdropoutprob dropoutprobability pdrop dropprob attdropout dropouta droprate attentiondropoutrate attnp "
    "attndropoutrate pdropout keyattndropout dprob attdrop dropoutattn dr attndropoutprob attentiondropoutprob",
    "0.0": "residdropout residpdrop projdrop hiddendropoutprob hiddendropout outputdropout projdropout dropoutproj "
    "outdropout resdropout residualdropout droppath embpdrop embddrop embeddropout ffdropout activationdropout",
    "L": "seqsize maxseqsize sequencesize "
    "blocksize maxlen contextlength ctxlen maxseqlen nctx seqlen sequencelength maxpositionembeddings npositions "
    "maxlength maxsequencelength contextsize_ ctx window maxseqlength length numtokens maxcontext contextwindow maxt seqlength "
    "maxsize blocklen ctxsize context T tmax maxcontextlength ntokens numpositions",
    "True": "bias qkvbias usebias attnbias projbias qbias kvbias addbias batchfirst attentionbias withbias outbias "
    "projectionbias normfirst prenorm normalizebefore prelayernorm",
    "False": "kqsame causal iscausal isdecoder masked usemask flash useflash crossattention iscrossattention needweights "
    "outputattentions usecache qknorm returnattention fusedattn useflashattention addzeroattn addbiaskv autoregressive "
    "isautoregressive useflashattn usesdpa isdecoderselfattention encoderdecoderattention userope userotary "
    "inference isinference optimized optimised usealibi usetalkingheads talkingheads userelpos userelativepos "
    "userelativeposition userelativepositions userelativebias",
    # How many times as wide as x an mlp is.
    "2": "forwardexpansion expansion expansionfactor expansionratio mlpratio mlpmult mlpexpansion ffmult ffnmult ffratio "
    "ffnratio ffexpansion ffnexpansion feedforwardexpansion feedforwardmult hiddenmult widenfactor wideningfactor fwdexpansion",
    "None": "device dtype normlayer mask layerid layeridx layer layernum rope rotary scale qkscale",
    "sqrt(D)": "temperature temp sqrtdk sqrtd sqrtheaddim",
    "1/sqrt(D)": "invsqrtdk invsqrtd invsqrtheaddim invsqrtdim invscale rsqrtdk rsqrtheaddim",
}
SIZES: dict[str, str] = {name: symbol for symbol, names in _SIZES.items() for name in names.lower().split()}

_INPUTS: dict[str, str] = {
    "x": "输入 x hiddenstates inputs tokens src input inp xs hiddenstate inputtensor seq sequence embeddings tgt data "
    "features embedded emb h xin tensor qkv inputembeddings target embeds y_ fromtensor",
    "q": "查询 q query queries qs xq queryinput qinput qx queriesin queryseq tgtq querystates qin",
    "k": "键 k key keys ks xk keyinput kinput kx keyseq keystates kin",
    "v": "值 v value values vs val vals xv valueinput vinput vx valueseq valuestates vin",
    "context": "annotations context "
    "encoderhiddenstates states memory kv keyvaluestates keyvalue y encoderoutput ctx cond encoderoutputs enc "
    "xkv keyvalues totensor encodings encoded z encoderout source x2 xkv encout xenc othercontext contexts crossattentioninput",
    "mask": "掩码 mask attnmask attentionmask srcmask tgtmask keypaddingmask paddingmask padmask validlens validlen lengths "
    "seqlens keep keepmask masks selfattnmask causalmask attmask attentionbias attnbias allowed visible contextmask "
    "encodermask encoderattentionmask memorymask srckeypaddingmask memorykeypaddingmask ignoremask m maskout vismask "
    "lens seqlengths keymask keylengths srclengths encoderpaddingmask hide hidden maskbool bias masktensor",
}
INPUTS: dict[str, str] = {name: what for what, names in _INPUTS.items() for name in names.split()}
# A flag of a call that turns something on that the contract does not have.
CALL_FLAGS = {
    "training",
    "causal",
    "iscausal",
    "needweights",
    "outputattentions",
    "returnattention",
    "returnweights",
    "usecache",
}
WEIGHTS_FLAGS = {"needweights", "outputattentions", "returnattention", "returnweights", "returnattn"}

KEEPS = {"keep", "keepmask", "allowed", "visible", "vismask"}
HIDES = {"ignoremask", "hide", "maskout", "hidden"}

_LAYERS = {
    "q": "q query queries qs que 查询",
    "k": "k key keys ks 键",
    "v": "v value values vs val vals 值",
    "o": "输出 o out output outputs final merge unify unifyheads concat combine c dense proj projection fc linear outproj "
    "projout wo toout cproj fcout lineout",
}
_LAYER = {name: role for role, names in _LAYERS.items() for name in names.split()}
_DECORATION = re.compile(
    r"(?:weights?|weight|matrix|matrices|projections?|projs?|proj|linears?|layers?|layer|lin|net|transform|dense|embedding|"
    r"embed|map|mat|mapping|fc|param|self|attn|attention|att|to|w|for|heads?|head|mlp|ws|weightmatrix|transformation|d|all|"
    r"get|conv|conv1d|multi|l|mha|sa|mh)"
)

_BESIDE = re.compile(
    r"attn|attention|att_|weight|score|prob|softmax|alpha|past|cache|present|kv|energy|dist|^att$|^a$|^p$|^w$|^s$",
    re.IGNORECASE,
)
_OUTPUT = re.compile(r"out(?:put)?s?(?:_|$)|context|ctx|result|attn_values?$", re.IGNORECASE)
NORMS = ("LayerNorm", "RMSNorm", "BatchNorm1d", "GroupNorm")


_OTHER_SIZES = re.compile(
    r"vocab|batch|ff|mlp|window|kernel|patch|image|class|layers|stride|depth|token_type|chunk|bucket|top_?k"
)


def plain(name: str) -> str:
    """A name for comparing: `num_Heads` → `numheads`."""
    return re.sub(r"[\W_]|(?<=\D)\d+$", "", name.lower()) or name.lower()


def role_of(path: str) -> str | None:
    """The role of a layer by its name: q, k, v, o, or None where the name does not say.

    >>> [role_of(name) for name in ("W_q", "to_keys", "valueProj", "c_proj", "linears.0")]
    ['q', 'k', 'v', 'o', None]
    """
    path = re.sub(
        r"\b(\w*)(?:layers|linears|projs|projections|fcs|lins|list)\.(?:\d+|\*)(?=\.|$)", _list_of_layers, path
    )
    # Without the class before a private name: _Attention__fc
    parts = [re.sub(r"^_\w+?__(?=\w)", "", part) for part in reversed(path.split(".")) if not part.isdecimal()]
    for part in parts:  # `query.linear` is q, though `linear` alone may be the output's
        said = {_LAYER[word] for word in _words(part) if word in _LAYER} - {"o"}
        if said:
            return said.pop() if len(said) == 1 else None
    of_output = any(word in _LAYER for part in parts if not part.endswith("linears") for word in _words(part))
    return "o" if of_output else None


def _list_of_layers(found: re.Match[str]) -> str:
    """The name of a list of layers, where it says whose they are: `q_layers`; else one that says nothing."""
    whose = {_LAYER[word] for word in _words(found[1]) if word in _LAYER} & {"q", "k", "v"}
    return found[1] if len(whose) == 1 else "of_a_list"


def _words(name: str) -> list[str]:
    """The words of a name, without what is said of every layer: `W_query` → ["query"]."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    words = [word for word in re.split(r"[_\W\d]+", split) if word]
    kept = []
    for word in words:
        if word in _LAYER:
            kept.append(word)
            continue
        for prefix in ("to", "w", "fc", "lin", "linear", "proj", "in", "x", "c", "h", "d", "m"):
            rest = word.removeprefix(prefix)
            if rest != word and rest in _LAYER:
                kept.append(rest)
                break
        else:
            for suffix in (
                "proj",
                "linear",
                "w",
                "layer",
                "s",
                "fc",
                "net",
                "lin",
                "vec",
                "mat",
                "map",
                "weight",
                "weights",
            ):
                rest = word.removesuffix(suffix)
                if rest != word and rest in _LAYER:
                    kept.append(rest)
                    break
            else:
                if not _DECORATION.fullmatch(word):
                    kept.append(word)
    return kept


def is_beside(name: str) -> bool:
    """Whether a name in a returned tuple is no output: the weights, a cache. `attn_out` is one."""
    return _BESIDE.search(name) is not None and (_OUTPUT.search(name) is None or "softmax" in name.lower())


def is_output(name: str) -> bool:
    """Whether a name in a returned tuple says that it is the output: `context`, `attn_out`."""
    return _OUTPUT.search(name) is not None and not is_beside(name)


def input_of(name: str) -> str | None:
    """What a parameter of a call is: x, q, k, v, context, mask, or None."""
    if re.fullmatch(r"(?:layer_)?head_?mask", name.lower()):
        return None  # which heads are left out, after the softmax
    if re.search(r"(?:^|_)pos(?:_|$)|pos_?e(?:mb|nc)|position", name.lower()):
        return None  # what is added for the place of a token: query_pos_emb
    known = INPUTS.get(plain(name))
    if _ONE_LENGTH.search(name.lower()):
        return None
    if known is None and re.search(
        r"mask|msk|pad(?:ding)?(?:_|$)|padding|valid|visible|allowed|lengths?$|_lens?$", name.lower()
    ):
        return "mask"
    if known is None and re.search(r"key_?(?:and_?)?val|^kv_(?!cache|past)|_kv$", name.lower()):
        return "context"
    if known is None and role_of(name) in ("q", "k", "v"):
        return role_of(name)
    return known or ("context" if re.search(r"^enc|encoder|memory|context|^cond", name.lower()) else None)


def is_lengths(name: str) -> bool:
    """Whether an input of a call is how many keys of each sample are real: `key_padding_lengths`, `valid_len`."""
    found = re.search(r"lengths$|(?:^|_|valid|seq|key|src)(?:lens?|length)$", name.lower())
    return found is not None and not _ONE_LENGTH.search(name.lower())


_ONE_LENGTH = re.compile(r"^max_?\w*(?:len|length)$")  # max_seq_length: a number, and not one for each sample


def size_of(name: str) -> str | None:
    """The symbol of a constructor's parameter, or None."""
    known = SIZES.get(plain(name))
    lower = name.lower()
    if known is not None or _OTHER_SIZES.search(lower):
        return known
    return next((symbol for pattern, symbol in _PATTERNS if re.search(pattern, lower)), None)


def size_in(name: str, text: str) -> str | None:
    """The symbol of a constructor's parameter in this source: what the code does with it goes before a name that can mean two.

    `hidden // head_size` is the size of a head where `head_size` is their number. A `scale` is divided by, or multiplied with.
    """
    symbol = size_of(name)
    own = rf"(?:\w+\.)*{re.escape(name)}\b"
    if symbol == "G" and re.search(rf"GroupNorm\((?:[^()]|\([^()]*\))*(?<!\w){own}", text):
        return "1"  # of a norm
    if symbol in ("L", "E") and _is_width_of_a_head(own, text):
        return "D"
    if symbol == "D" and (_is_width_of_x(own, name, text) or _is_shared_by_heads(own, name, text)):
        return "E"
    if symbol == "M" and re.search(rf"Linear\([^()\n]*(?:\w\s*\*\s*{own}|{own}\s*\*\s*\w)", text):
        return "2"  # Linear(width, mlp_dim * width)
    is_guess = symbol == "E" and plain(name) not in SIZES and not re.search(rf"Linear\([^()\n]*{own}", text)
    if (symbol in (None, "C") or is_guess) and _sides_of_a_mask(own).search(text):
        return "L"  # tgt_size
    if symbol is None and not _OTHER_SIZES.search(name.lower()):  # a name that says nothing: by what is made with it
        factors = re.findall(rf"(?:([\w.]+)\s*\*\s*{own})|(?:{own}\s*\*\s*([\w.]+))", text)
        if any(size_of(one.rpartition(".")[2]) == "H" for pair in factors for one in pair if one):
            return "D"  # Linear(n_latent * n_head, width)
        if any(size_of(quotient) == "D" for quotient in re.findall(rf"(\w+)\s*=\s*[\w.]+\s*//\s*{own}", text)):
            return "H"
        if re.search(rf"Linear\(\s*(?:in_features\s*=\s*)?{own}\s*,", text):
            return "E"
        if re.search(rf"\bDropout\(\s*(?:p\s*=\s*)?{own}\s*[,)]", text):
            return "p"  # droupout
    if symbol in ("E", None) and re.search(
        rf"(?i)ModuleList\(\s*\[?\s*\w*(?:head|att)\w*\([^\n]*\brange\(\s*{own}\s*\)", text
    ):
        return "H"  # as many of them as heads
    if symbol == "E" and re.search(rf"\b\w*heads?\s*=\s*[\w.]+\s*//\s*{own}", text):
        return "D"  # the number of heads is a width, divided by it
    if symbol == "D":
        quotients = re.findall(rf"(\w+)\s*=\s*[\w.]+\s*//\s*{own}", text)
        sizes = {size_of(quotient) for quotient in quotients if plain(quotient) != plain(name)}
        return (
            "H"
            if sizes and "H" not in sizes and not re.search(rf"{own}\s*\*\s*\w*head|head\w*\s*\*\s*{own}", text)
            else "D"
        )
    if plain(name) in _SCALES:
        if re.search(rf"(?:/=?|\.div_?\()\s*{own}", text):
            return "sqrt(D)"
        return "1/sqrt(D)" if re.search(rf"(?:\*=?|\.mul_?\()\s*{own}|{own}\s*\*", text) else symbol
    return symbol


_SCALES = frozenset(("scale", "scaling", "scalefactor", "softmaxscale", "scalingfactor", "attnscale", "smscale"))


def _is_width_of_a_head(own: str, text: str) -> bool:
    """Whether layers have as many outputs as heads times this, and no other size of it: Linear(dim, num_heads * size).

    Also by an attribute that it is kept in, `self.d_k = size`, and where heads are split: `view(b, t, heads, size)`.
    """
    kept = re.findall(rf"^\s*((?:self\.\w+\s*=\s*)+){own}\s*$", text, re.MULTILINE)
    own = "|".join([own, *(rf"self\.{name}\b" for line in kept for name in re.findall(r"self\.(\w+)", line))])
    own = f"(?:{own})"
    heads = r"(?:\b\w+\.)*(?:num_?|n_?)?heads?\w*"
    times = rf"(?:{heads}\s*\*\s*{own}|{own}\s*\*\s*{heads})"
    alone = rf"Linear\(\s*(?:in_features\s*=\s*)?{own}\s*[,)]|Linear\([^()]*,\s*(?:out_features\s*=\s*)?{own}\s*[,)]"
    split = rf"\.(?:view|reshape|unflatten)\((?:[^()]|\([^()]*\))*?\b{heads}\s*,\s*{own}\s*[,)]"
    return re.search(rf"Linear\([^()\n]*{times}|{split}", text) is not None and re.search(alone, text) is None


def _is_width_of_x(own: str, name: str, text: str) -> bool:
    """Whether a layer takes as many inputs and makes all heads, `Linear(k, heads * k)`, or one: `Linear(h_dim, head_size)`."""
    if re.search(rf"Linear\(\s*(?!{own}\s*,)[\w.]+\s*,[^()\n]*{own}", text):
        return False  # it is made of something wider
    made = re.findall(rf"Linear\(\s*{own}\s*,\s*([^()\n,]+)", text)
    heads = r"\b(?:num_?|n_?)?heads?\b"
    others = (re.fullmatch(r"(?:\w+\.)*(\w+)", size.strip()) for size in made)
    return any(re.search(own, size) and re.search(heads, size) for size in made) or any(
        other is not None and plain(other[1]) != plain(name) and size_of(other[1]) == "D" for other in others
    )


def _is_shared_by_heads(own: str, name: str, text: str) -> bool:
    """Whether the constructor asks that the heads divide it: `assert qk_dim % num_heads == 0`."""
    return "head" not in name.lower() and re.search(rf"{own}\s*%\s*(?:self\.)?\w*heads?\b", text) is not None


def _sides_of_a_mask(own: str) -> re.Pattern[str]:
    """Where a size is both sides of a triangle, or of the part that is cut from one: `tril(ones(n, n))`, `tril[:n, :n]`."""
    return re.compile(
        rf"tri[lu]\((?:\s|[\w.]+\()*\(?\s*{own}\s*,\s*{own}\b|\[(?:\s*:\s*,)*\s*:\s*{own}\s*,\s*:\s*{own}\s*\]"
    )


# For names that are not listed: what they contain, in this order.
_PATTERNS = (
    (r"att\w*drop|drop\w*att", "p"),
    (r"drop", "0.0"),
    (r"bias", "True"),
    (r"head\w*(?:dim|size|width|channel)|(?:dim|size|width)\w*head|per_head|^d_\w*head$", "D"),
    (r"(?:kv|key_?value)\w*head|head\w*(?:kv|key_?value)|group", "G"),
    (r"head", "H"),
    (r"^(?:emb|embed|embedding|vec|vector|word_?vec|hidden|feature)s?_?len(?:gth)?$", "E"),  # embedding_len
    (r"len(?:gth)?s?$|max_?seq|^(?:max_?|tgt_?|n_?)?block_?size|n_pos|max_pos", "L"),
    (r"(?:context|memory|encoder|cross|kv)\w*(?:dim|size|channels)", "C"),
    (r"dim|size|width|embed|emb_|model|hidden|feature|channel|units", "E"),
)
