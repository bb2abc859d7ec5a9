"""The bytes between a grading and its attempt process: fixed headers and raw tensor bytes.

A request (to the attempt) is trusted: a header, its fields, tensor bytes with their strides.
A reply (from the attempt) is not trusted. Every count, size, dtype and rank is checked against fixed limits *before* anything
is allocated. Text is bounded, and nothing is unpickled, parsed or evaluated.

Layouts (little-endian):
    request  magic[4] nonce:u64 fields:u32 tensors:u32, fields, then for each tensor its storage bytes
    reply    magic[4] nonce:u64 status:u8 pad[3] texts:u32 tensors:u32,
             texts x length:u32, tensors x descriptor, the texts, the tensors' bytes (contiguous)
    descriptor  dtype:u8 rank:u8 device:u8 flags:u8 pad[4] sizes:8 x u64
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attn_kata.protocol import messages
from attn_kata.protocol.messages import Request

QUESTION, LENGTHS = struct.Struct("<4sQ"), struct.Struct("<II")
REPLY = struct.Struct("<4sQB3xII")
LENGTH = struct.Struct("<I")
DESCRIPTOR = struct.Struct("<BBBB4x8Q")
REQUEST_MAGIC, REPLY_MAGIC = b"AKq1", b"AKr1"

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)
_ITEM_BYTES = {dtype: torch.empty((), dtype=dtype).element_size() for dtype in DTYPES}
_DTYPE_CODE = {dtype: code for code, dtype in enumerate(DTYPES)}
_DTYPE_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}
_NAME_OF = {dtype: name for name, dtype in _DTYPE_NAME.items()}

# Devices: only these three are told apart.
CPU, META, OTHER = 0, 1, 2
# Descriptor flags. ABSENT: no bytes follow (no gradient, a meta tensor, or only the shape is sent).
ABSENT, SHARES_INPUT = 1, 2

# Statuses of a reply.
OK, RAISED, BAD_RESULT, SYNTAX, NO_ENTRY, NO_MEMORY, REFUSED = range(7)

MAX_RANK, MAX_SIZE, MAX_TENSORS, MAX_TEXTS, MAX_TEXT = 8, 1 << 31, 512, 512, 1 << 16
MAX_TEXT_BYTES = 4 * MAX_TEXT  # of all texts together
# Torch cannot make a tensor whose sizes have a larger product, not even an empty one such as 0 x 2^31 x 2^31 x 2^31.
MAX_ELEMENTS = 1 << 48
MAX_REPLY_BYTES = 64 << 20
_ZEROS = (0,) * MAX_RANK

Reader = Callable[[int], bytearray]


class WireError(Exception):
    """The attempt process sent bytes that are not a reply."""


@dataclass(frozen=True, kw_only=True)
class TensorReply:
    """One tensor of a reply. `data` is None if no bytes were sent."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: int
    shares_input: bool
    data: Tensor | None

    def copied(self) -> TensorReply:
        """The same with a copy of its data."""
        data = None if self.data is None else self.data.clone()
        return TensorReply(
            shape=self.shape, dtype=self.dtype, device=self.device, shares_input=self.shares_input, data=data
        )


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply: a status, texts and tensors."""

    status: int
    texts: tuple[str, ...]
    tensors: tuple[TensorReply, ...]


def storage_bytes(tensor: Tensor) -> bytes:
    """A copy of the raw bytes of a contiguous CPU tensor, without NumPy."""
    if tensor.numel() == 0:
        return b""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def source_tensor(source: bytes) -> Tensor:
    """A source as a tensor of its bytes, (bytes,) uint8, so that a request can carry it."""
    return torch.frombuffer(bytearray(source), dtype=torch.uint8) if source else torch.empty(0, dtype=torch.uint8)


# ---------------------------------------------------------------------------------------------- requests (trusted)


def encode_request(request: Request, nonce: int) -> bytes:
    """The bytes of a request."""
    return numbered(encode_question(request), nonce)


def numbered(question: bytes, nonce: int) -> bytes:
    """The bytes of a request: an encoded question with its nonce."""
    return QUESTION.pack(REQUEST_MAGIC, nonce) + question


def encode_question(request: Request) -> bytes:
    """The question of a request: all its bytes except the nonce. Tensors keep their strides, also non-contiguous ones."""
    described, blobs = [], []
    for tensor in request.tensors:
        blob = storage_bytes(tensor if tensor.is_contiguous() else window(tensor))
        described.append((_NAME_OF[tensor.dtype], tuple(tensor.shape), tensor.stride(), len(blob)))
        blobs.append(blob)
    fields = messages.request_to_bytes(request, described)
    return b"".join([LENGTHS.pack(len(fields), len(blobs)), fields, *blobs])


def window(tensor: Tensor) -> Tensor:
    """The part of the storage that a tensor uses, (reach,). The same shape and strides describe the tensor in it."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return torch.as_strided(tensor, (reach if tensor.numel() else 0,), (1,), tensor.storage_offset())


def decode_request(read: Reader) -> tuple[Request, int]:
    """Read a request and its nonce with `read(count)`. Runs in the attempt process; the sender is trusted."""
    _, nonce = QUESTION.unpack(read(QUESTION.size))
    length, _ = LENGTHS.unpack(read(LENGTHS.size))
    kind, fields, described = messages.request_of_bytes(read(length))
    tensors = []
    for name, shape, stride, count in described:
        dtype = _DTYPE_NAME[name]
        if count:
            flat = torch.frombuffer(read(count), dtype=dtype)
            tensors.append(flat.as_strided(shape, stride))
        else:
            tensors.append(torch.empty(shape, dtype=dtype))
    return kind(**fields, tensors=tuple(tensors)), nonce


# ------------------------------------------------------------------------------------------- replies (not trusted)


def describe(tensor: Tensor, flags: int) -> bytes:
    """The descriptor of a tensor. Raises ValueError for a tensor that a reply cannot carry."""
    if tensor.dtype not in _DTYPE_CODE:
        raise ValueError(f"a tensor of dtype {tensor.dtype}")
    if tensor.dim() > MAX_RANK:
        raise ValueError(f"a tensor of {tensor.dim()} dimensions")
    if not _sizes_fit(tensor.shape):
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)}")
    device = CPU if tensor.is_cpu else META if tensor.is_meta else OTHER
    return DESCRIPTOR.pack(_DTYPE_CODE[tensor.dtype], tensor.dim(), device, flags, *(*tensor.shape, *_ZEROS)[:MAX_RANK])


def _sizes_fit(sizes: Sequence[int]) -> bool:
    elements = 1
    for size in sizes:  # a loop: this is asked for every tensor, and two generators take three times as long
        elements *= size or 1
        if size > MAX_SIZE:
            return False
    return elements <= MAX_ELEMENTS


def encode_reply(
    nonce: int, status: int, texts: tuple[str, ...] = (), tensors: tuple[tuple[Tensor, int], ...] = ()
) -> bytes:
    """The bytes of a reply. `tensors` are (tensor, flags). Raises ValueError if there is too much for a reply."""
    raw_texts = [text.encode("utf-8", "replace")[:MAX_TEXT] for text in texts]
    # Too long is an error, and nothing is cut off: ten thousand invented operations would push a forbidden one off the list.
    if len(raw_texts) > MAX_TEXTS or sum(map(len, raw_texts)) > MAX_TEXT_BYTES:
        raise ValueError(f"too much text for a reply: {len(raw_texts)} texts")
    if len(tensors) > MAX_TENSORS:
        raise ValueError(f"{len(tensors)} tensors; at most {MAX_TENSORS} can be sent")
    descriptors, blobs, total = [], [], 0
    for tensor, flags in tensors:
        if not tensor.is_cpu:
            flags |= ABSENT
        descriptors.append(describe(tensor, flags))
        if flags & ABSENT:
            continue
        total += tensor.numel() * tensor.element_size()
        if total > MAX_REPLY_BYTES:  # checked first: making an expanded tensor contiguous may fill the memory
            raise ValueError(f"a tensor of shape {tuple(tensor.shape)}, more than {MAX_REPLY_BYTES >> 20} MiB")
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
        blobs.append(storage_bytes(tensor))
    head = REPLY.pack(REPLY_MAGIC, nonce, status, len(raw_texts), len(descriptors))
    lengths = b"".join(LENGTH.pack(len(text)) for text in raw_texts)
    return b"".join([head, lengths, *descriptors, *raw_texts, *blobs])


def _from_bytes(raw: bytearray, dtype: torch.dtype) -> Tensor:
    """Untrusted bytes as a tensor of one dimension. Raises WireError if a bool is neither 0 nor 1."""
    if dtype is torch.bool:
        numbers = torch.frombuffer(raw, dtype=torch.uint8)
        if bool((numbers > 1).any()):  # such a bool makes comparisons unreliable
            raise WireError("its boolean tensor holds bytes other than 0 and 1")
        return numbers.bool()
    return torch.frombuffer(raw, dtype=dtype)


def decode_reply(read: Reader, nonce: int, limit: int = MAX_REPLY_BYTES) -> Reply:
    """Read the reply to the request with this nonce, with `read(count)`.

    Every size is checked before memory is allocated. Raises WireError if the bytes are not a valid reply.
    """
    magic, echoed, status, text_count, tensor_count = REPLY.unpack(read(REPLY.size))
    if magic != REPLY_MAGIC or echoed != nonce or status > REFUSED:
        raise WireError("its header is not valid")
    if text_count > MAX_TEXTS or tensor_count > MAX_TENSORS:
        raise WireError(f"it announces {text_count} texts and {tensor_count} tensors")
    lengths = [length for (length,) in LENGTH.iter_unpack(read(text_count * LENGTH.size))]
    if any(length > MAX_TEXT for length in lengths) or sum(lengths) > MAX_TEXT_BYTES:
        raise WireError(f"it announces {sum(lengths)} bytes of text")
    described, total = [], 0
    for code, rank, device, flags, *sizes in DESCRIPTOR.iter_unpack(read(tensor_count * DESCRIPTOR.size)):
        if code >= len(DTYPES) or rank > MAX_RANK or device > OTHER or flags > (ABSENT | SHARES_INPUT):
            raise WireError("it describes a tensor of an unknown kind")
        if not _sizes_fit(sizes[:rank]) or any(sizes[rank:]):
            raise WireError(f"it announces a tensor of sizes {sizes}")
        count = 0 if flags & ABSENT else math.prod(sizes[:rank]) * _ITEM_BYTES[DTYPES[code]]
        total += count
        if total > limit:
            raise WireError(f"it announces more than {limit >> 20} MiB")
        described.append((DTYPES[code], tuple(sizes[:rank]), device, flags, count))
    texts = tuple(bytes(read(length)).decode("utf-8", "replace") for length in lengths)
    tensors = []
    for dtype, shape, device, flags, count in described:
        if flags & ABSENT:
            data = None
        elif count:
            data = _from_bytes(read(count), dtype).reshape(shape)
        else:
            data = torch.empty(shape, dtype=dtype)
        tensors.append(
            TensorReply(shape=shape, dtype=dtype, device=device, shares_input=bool(flags & SHARES_INPUT), data=data)
        )
    return Reply(status=status, texts=texts, tensors=tuple(tensors))
