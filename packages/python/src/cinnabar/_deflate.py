"""The layer `deflate`: both directions are raw RFC 1951 [MON 12]."""

from __future__ import annotations

import zlib
from typing import Iterator

from .errors import ProtocolError

_PIECE_BYTES = 64 << 10
_MAX_RATIO = 100
#: So much may come of little input.
_MAX_HEAD_START = 1 << 20


class Deflate:
    def __init__(self) -> None:
        self._compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        self._decompressor = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._taken = 0
        self._given = 0

    def compress(self, data: bytes, is_secret: bool) -> bytes:
        """Secrets stand between full flushes: how well they compress tells nothing of what is beside them."""
        if not is_secret:
            return self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        before = self._compressor.flush(zlib.Z_FULL_FLUSH)
        return before + self._compressor.compress(data) + self._compressor.flush(zlib.Z_FULL_FLUSH)

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """In pieces, so that little input cannot fill the memory. Raises `ProtocolError`."""
        self._taken += len(data)
        while True:
            try:
                piece = self._decompressor.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise ProtocolError(f"the layer deflate does not decode: {error}") from None
            self._given += len(piece)
            if self._given > self._taken * _MAX_RATIO + _MAX_HEAD_START:
                raise ProtocolError(f"the layer deflate gives more than {_MAX_RATIO} times its input")
            if self._decompressor.eof:
                raise ProtocolError("the layer deflate has ended")
            yield piece
            data = self._decompressor.unconsumed_tail
            if len(data) == 0 and len(piece) < _PIECE_BYTES:
                return
