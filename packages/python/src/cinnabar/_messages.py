"""What a server sends [MON 3]: `read_message` reads the payload of one frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Tuple, Union

from ._constants import MAX_ID, MessageId, Status
from ._values import Value, read_count, read_name, read_typed
from ._xdr import Reader
from .errors import ProtocolError


@dataclass(frozen=True)
class Response:
    seq: int
    status: int
    result: int
    detail: str


@dataclass(frozen=True)
class Challenge:
    """AUTH: one step of a login that goes on."""

    data: bytes


@dataclass(frozen=True)
class Capabilities:
    """What the server offers on this connection now [MON 3.2]."""

    major: int
    minor: int
    #: Methods to log in, in the order in which the server prefers them.
    auth: Tuple[str, ...]
    #: Layers that can be added now.
    layer: Tuple[str, ...]
    extension: Tuple[str, ...]
    #: Name and version of the server.
    software: str
    #: The largest command, in bytes; 0 if the server does not say it.
    max_frame_bytes: int
    #: Names the history of transaction ids; empty before the login, and if the server does not name it.
    generation: str


@dataclass(frozen=True)
class GapMessage:
    transaction: int
    metric: int
    count: int
    first: int
    last: int
    reason: int


@dataclass(frozen=True)
class NoticeMessage:
    code: int
    channel: int
    detail: str


@dataclass(frozen=True)
class ValueMessage:
    metric: int
    transaction: int
    time: int
    value: Value


Message = Union[Response, Challenge, Capabilities, GapMessage, NoticeMessage, ValueMessage]


def read_message(payload: bytes) -> Message:
    """Raises `ProtocolError`."""
    reader = Reader(payload)
    message = _read(reader, reader.uint32())
    reader.finish()
    return message


def _read(reader: Reader, number: int) -> Message:
    if 0 < number <= MAX_ID:
        return ValueMessage(number, reader.uint64(), reader.uint64(), read_typed(reader))
    if number == MessageId.RESPONSE:
        seq, status, result = reader.uint32(), reader.uint32(), reader.uint32()
        has_detail = status not in (Status.OK, Status.AUTH_NEEDED)
        return Response(seq, status, result, reader.string() if has_detail else "")
    if number == MessageId.PRODUCER_CAPS:
        return _read_capabilities(reader)
    if number == MessageId.AUTH:
        return Challenge(reader.opaque())
    if number == MessageId.GAP:
        transaction, metric, count = reader.uint64(), reader.uint32(), reader.uint64()
        return GapMessage(transaction, metric, count, reader.uint64(), reader.uint64(), reader.uint32())
    if number == MessageId.NOTICE:
        return NoticeMessage(reader.uint32(), reader.uint32(), reader.string())
    raise ProtocolError(f"no message has the number {number}")


def _read_capabilities(reader: Reader) -> Capabilities:
    """Names may stand several times; those that this version does not know are passed over."""
    major, minor = reader.uint32(), reader.uint32()
    entries: Dict[str, List[Union[str, int]]] = {}
    for _ in range(read_count(reader, 12)):
        name, value = read_name(reader), read_typed(reader).value
        if isinstance(value, (str, int)):
            entries.setdefault(name, []).append(value)

    def texts(name: str) -> Tuple[str, ...]:
        return tuple(entry for entry in entries.get(name, []) if isinstance(entry, str))

    def text(name: str) -> str:
        return next(iter(texts(name)), "")

    sizes = [entry for entry in entries.get("max_frame", []) if isinstance(entry, int)]
    return Capabilities(
        major,
        minor,
        texts("auth"),
        texts("layer"),
        texts("extension"),
        text("software"),
        sizes[0] if sizes else 0,
        text("generation"),
    )
