"""XDR (RFC 4506) as the protocol uses it: big-endian, and everything padded to four bytes [MON 1].

Each length is checked against the bytes that are left before anything is made of it.
"""

from __future__ import annotations

import struct

from .errors import ProtocolError

_UINT32 = struct.Struct(">I")
_INT32 = struct.Struct(">i")
_UINT64 = struct.Struct(">Q")
_INT64 = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")


class Reader:
    """Takes one field after the other from the payload of a frame. Raises `ProtocolError`."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0
        #: How many items without bytes of their own were read so far: they are bounded by count [MON 2.3].
        self.empty_items = 0

    @property
    def remaining(self) -> int:
        return len(self._payload) - self._at

    def uint32(self) -> int:
        return int(_UINT32.unpack_from(self._payload, self._take(4))[0])

    def int32(self) -> int:
        return int(_INT32.unpack_from(self._payload, self._take(4))[0])

    def uint64(self) -> int:
        return int(_UINT64.unpack_from(self._payload, self._take(8))[0])

    def int64(self) -> int:
        return int(_INT64.unpack_from(self._payload, self._take(8))[0])

    def double(self) -> float:
        return float(_DOUBLE.unpack_from(self._payload, self._take(8))[0])

    def boolean(self) -> bool:
        number = self.uint32()
        if number > 1:
            raise ProtocolError(f"a boolean is 0 or 1, not {number}")
        return number == 1

    def opaque(self, max_bytes: int = 0xFFFFFFFF) -> bytes:
        length = self.uint32()
        if length > max_bytes:
            raise ProtocolError(f"{length} bytes where at most {max_bytes} are allowed")
        start = self._take(length)
        data = self._payload[start : start + length]
        padding = -length & 3
        start = self._take(padding)
        if any(self._payload[start : start + padding]):
            raise ProtocolError("the padding is not zero")
        return data

    def string(self, max_bytes: int = 0xFFFFFFFF) -> str:
        data = self.opaque(max_bytes)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a string is not UTF-8") from None

    def finish(self) -> None:
        """Refuses bytes after the last field."""
        if self.remaining > 0:
            raise ProtocolError(f"{self.remaining} bytes left over after the last field")

    def _take(self, length: int) -> int:
        """Passes over `length` bytes and returns where they begin."""
        start = self._at
        if length > len(self._payload) - start:
            raise ProtocolError(f"{length} bytes expected, {len(self._payload) - start} left")
        self._at = start + length
        return start


def uint32(number: int) -> bytes:
    return _UINT32.pack(number)


def uint64(number: int) -> bytes:
    return _UINT64.pack(number)


def int64(number: int) -> bytes:
    return _INT64.pack(number)


def double(number: float) -> bytes:
    return _DOUBLE.pack(number)


def opaque(data: bytes) -> bytes:
    return b"".join((_UINT32.pack(len(data)), data, bytes(-len(data) & 3)))


def string(text: str) -> bytes:
    """Raises `ValueError` for a text that UTF-8 does not have."""
    return opaque(utf8(text))


def utf8(text: str) -> bytes:
    """Raises `ValueError` without the text, which may be a secret: the error of `str.encode` holds it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    raise ValueError("a text has a lone surrogate, which UTF-8 does not have")
