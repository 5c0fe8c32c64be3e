"""Who a consumer is, and how it proves that [MON 11]. Nothing here shows a password or token when it is printed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Callable, NamedTuple, Union

from .errors import ConnectionError, ErrorCode

TokenFunction = Callable[[], Union[str, Awaitable[str]]]

#: A token, or a function that is called for one before each connection, for tokens that expire.
TokenSource = Union[str, TokenFunction]


class Secret:
    """A text that nobody may see: it is not in what is printed, logged, or shown with a traceback."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        return self.__text

    def __repr__(self) -> str:
        return "<secret>"


@dataclass(frozen=True)
class PasswordCredentials:
    #: `tenant/user`, or `user` for the tenant `default`.
    identity: str
    password: Secret

    def __str__(self) -> str:
        return self.identity


class TokenCredentials:
    def __init__(self, source: TokenSource) -> None:
        self._source: Union[Secret, TokenFunction] = Secret(source) if isinstance(source, str) else source

    @property
    def is_renewed(self) -> bool:
        """Whether there may be another token at the next connection."""
        return not isinstance(self._source, Secret)

    async def token(self) -> Secret:
        """Raises `ConnectionError` NO_TOKEN."""
        if isinstance(self._source, Secret):
            return self._source
        try:
            token = self._source()
            return Secret(token if isinstance(token, str) else await token)
        except Exception as error:
            raise ConnectionError(ErrorCode.NO_TOKEN, f"there is no token to log in with: {error}") from error

    def __str__(self) -> str:
        return "the owner of a token"


class CertificateCredentials:
    """The certificate is that of the TLS context."""

    def __str__(self) -> str:
        return "the owner of a certificate"


Credentials = Union[PasswordCredentials, TokenCredentials, CertificateCredentials]


class Token(NamedTuple):
    #: For the user who is to log in with it. It is as secret as a password.
    token: str
    #: What the control `token.add` takes: SHA-256 of the token as 64 hexadecimal digits.
    hash: str

    def __repr__(self) -> str:
        return f"Token(token=<secret>, hash={self.hash!r})"


def new_token() -> Token:
    """Makes a token. It is made here so that the server never sees it, and keeps only its hash."""
    token = f"cnb_{secrets.token_urlsafe(32)}"
    return Token(token, hashlib.sha256(token.encode()).hexdigest())
