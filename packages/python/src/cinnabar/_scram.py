"""The client's half of SCRAM-SHA-256 (RFC 5802, RFC 7677). One object is one attempt: `first`, `final`, `verify`.

The final message authenticates the client; only `verify` authenticates the server, so the connection is used after it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from typing import Optional

from ._credentials import Secret
from .errors import CinnabarError

METHOD = "scram-sha-256"
_MIN_ITERATIONS = 4096
#: More than this is refused: these already take seconds.
_MAX_ITERATIONS = 10_000_000

_EXTENSIONS = r"(?:,(?!m=)[A-Za-z]=[^,\0]+)*"
_SERVER_FIRST = re.compile(r"r=([!-+\--~]{1,256}),s=([A-Za-z0-9+/]+={0,2}),i=([1-9][0-9]{0,9})" + _EXTENSIONS)
_SERVER_FINAL = re.compile(r"(?:v=([A-Za-z0-9+/]+={0,2})|e=([A-Za-z0-9-]{1,64}))" + _EXTENSIONS)


class ScramError(CinnabarError):
    """The exchange cannot go on."""


class NotProven(ScramError):
    """The server does not know the password."""


class ScramClient:
    def __init__(self, identity: str, password: Secret, nonce: Optional[str] = None) -> None:
        """`nonce`: printable ASCII without commas; random unless given."""
        self._password = password
        self._nonce = nonce or secrets.token_urlsafe(24)
        # The server prepares the name.
        name = identity.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature: Optional[bytes] = None

    def first(self) -> bytes:
        """The client-first-message."""
        return b"n,," + self._first_bare.encode()

    def final(self, server_first: bytes) -> bytes:
        """The client-final-message, from the server-first-message. Takes time for the iterations. Raises `ScramError`."""
        text = _decoded(server_first)
        match = _SERVER_FIRST.fullmatch(text)
        salt = None if match is None else _from_base64(match[2])
        if match is None or salt is None:
            raise ScramError("the server's first message does not follow RFC 5802")
        nonce, iterations = match[1], int(match[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError("the server answered with a nonce that does not continue ours")
        if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            wanted = f"{_MIN_ITERATIONS} to {_MAX_ITERATIONS}"
            raise ScramError(f"the server asks for {iterations} iterations, {wanted} are acceptable")
        password = prepare(self._password.reveal()).encode()
        salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._first_bare},{text},{without_proof}".encode()
        client_key = _hmac(salted, b"Client Key")
        signature = _hmac(hashlib.sha256(client_key).digest(), message)
        self._server_signature = _hmac(_hmac(salted, b"Server Key"), message)
        proof = bytes(one ^ other for one, other in zip(client_key, signature))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Checks the server-final-message. Raises `ScramError` unless it proves that the server knows the password too."""
        expected, self._server_signature = self._server_signature, None
        match = _SERVER_FINAL.fullmatch(_decoded(server_final))
        if match is None:
            raise ScramError("the server's final message does not follow RFC 5802")
        if match[2] is not None:
            raise ScramError(f"the server refused: {match[2]}")
        signature = _from_base64(match[1])
        if expected is None or signature is None or not hmac.compare_digest(signature, expected):
            raise NotProven("the server does not know this password: it may not be the one you mean")


def prepare(password: str) -> str:
    """SASLprep (RFC 4013): one form for passwords that look alike. Raises `ScramError` for characters that it prohibits."""
    if password != "" and password.isascii() and password.isprintable():
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    if prepared == "" or any(_is_prohibited(character) for character in prepared):
        raise ScramError("the password is empty or has characters that no password may have (RFC 4013)")
    if any(stringprep.in_table_d1(character) for character in prepared):
        ends_right_to_left = stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])
        if not ends_right_to_left or any(stringprep.in_table_d2(character) for character in prepared):
            raise ScramError("the password mixes directions of writing as no password may (RFC 4013)")
    return prepared


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _is_prohibited(character: str) -> bool:
    return any(in_table(character) for in_table in _PROHIBITED)


def _decoded(message: bytes) -> str:
    return message.decode(errors="replace")


def _from_base64(text: str) -> Optional[bytes]:
    """Only the one form of each text: otherwise unused bits could be changed unnoticed."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return data if base64.b64encode(data).decode() == text else None


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
