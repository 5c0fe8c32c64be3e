"""What a consumer sends [MON 2]: the bytes after the number of the command and its seq."""

from __future__ import annotations

from . import _xdr
from ._constants import Command
from ._values import Arguments, write_arguments


def write_command(command: Command, seq: int, arguments: bytes = b"") -> bytes:
    """A whole frame."""
    return b"".join((_xdr.uint32(8 + len(arguments)), _xdr.uint32(command), _xdr.uint32(seq), arguments))


def named(name: str, arguments: Arguments) -> bytes:
    """Of COLLECT, QUERY, EXECUTE and DEF_CHANNEL: the name of a metric or control, or a URL, and arguments."""
    return _xdr.string(name) + write_arguments(arguments)


def binding(metric: int, channel: int) -> bytes:
    """Of SUBSCRIBE, BUFFER, GET and STOP."""
    return _xdr.uint32(metric) + _xdr.uint32(channel)


def channel(channel: int) -> bytes:
    """Of SET_CHANNEL and DEL_CHANNEL."""
    return _xdr.uint32(channel)


def commit(transaction: int, through: bool) -> bytes:
    return _xdr.uint64(transaction) + (_xdr.uint32(1) if through else b"")


def auth(method: str, data: bytes) -> bytes:
    return _xdr.string(method) + _xdr.opaque(data)


def layer(name: str) -> bytes:
    return _xdr.string(name)
