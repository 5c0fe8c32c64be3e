"""Cuts a stream into frames: four bytes of length, and the payload [MON 1].

A length out of bounds is refused from the length field alone, before anything is kept for it.
"""

from __future__ import annotations

from typing import Optional

from ._xdr import uint32
from .errors import ProtocolError

MIN_FRAME_BYTES = 8
MAX_FRAME_BYTES = 1 << 20
MAX_FRAME_BYTES_BEFORE_AUTH = 1 << 16


class Framer:
    """Takes the stream in pieces of any size, and gives whole payloads."""

    def __init__(self) -> None:
        self.max_frame_bytes = MAX_FRAME_BYTES_BEFORE_AUTH
        self._buffer = bytearray()
        #: What is before this was given.
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Takes the next piece of the stream."""
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def next(self) -> Optional[bytes]:
        """The payload of the next frame; None if some of its bytes have not come. Raises `ProtocolError`."""
        start = self._at + 4
        if start > len(self._buffer):
            return None
        length = int.from_bytes(self._buffer[self._at : start], "big")
        self._check(length)
        if start + length > len(self._buffer):
            return None
        self._at = start + length
        return bytes(self._buffer[start : self._at])

    def take_rest(self) -> bytes:
        """Takes away what has come after the last payload that was given."""
        rest = bytes(self._buffer[self._at :])
        self._buffer.clear()
        self._at = 0
        return rest

    def _check(self, length: int) -> None:
        if length > self.max_frame_bytes:
            raise ProtocolError(f"a frame of {length} bytes; the limit is {self.max_frame_bytes}")
        if length < MIN_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes; the least is {MIN_FRAME_BYTES}")
        if length % 4 != 0:
            raise ProtocolError(f"a frame of {length} bytes, which is not a multiple of 4")


def frame(payload: bytes) -> bytes:
    return uint32(len(payload)) + payload
