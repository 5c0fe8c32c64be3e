"""The errors of the library. None of them ever contains a password or token.

`StatusError`: the server refused one command, and the connection continues. `ConnectionError`: there is no connection, or
none any more. `ExpressionError`: an expression cannot be evaluated.
"""

from __future__ import annotations

from enum import Enum
from typing import Optional, Tuple, Union

from ._constants import NoticeCode, Status


class CinnabarError(Exception):
    """What all errors of this library are."""


class StatusError(CinnabarError):
    """The server refused a command."""

    #: The name of the command, such as "QUERY".
    command: str
    #: The name of the status, such as "NO_SUCH_METRIC", or its number if this version does not know it.
    status: Union[str, int]
    #: The server's own words; may be empty.
    detail: str

    def __init__(self, command: str, code: int, detail: str) -> None:
        self.command = command
        self.status = Status(code).name if code in Status.__members__.values() else code
        self.detail = detail
        super().__init__(f"{command} was refused{': ' if detail else ''}{detail} ({self.status})")


class ExpressionError(CinnabarError):
    """An expression that the server cannot evaluate."""

    #: As in Prometheus' HTTP API: "bad_data", "execution", "timeout" or "unavailable".
    type: str
    #: Where it is: `expr[position[0]:position[1]]`; None if that cannot be said.
    position: Optional[Tuple[int, int]]

    def __init__(self, type: str, message: str, position: Optional[Tuple[int, int]] = None) -> None:
        self.type = type
        self.position = position
        super().__init__(message)


class ErrorCode(str, Enum):
    """Why there is no connection. Each is equal to its name: `error.code == "UNREACHABLE"`."""

    #: The URL cannot be connected to.
    BAD_URL = "BAD_URL"
    #: The connection could not be made; `__cause__` has the system's error.
    UNREACHABLE = "UNREACHABLE"
    #: The server's certificate is not valid for it, or not signed by a trusted authority.
    UNTRUSTED = "UNTRUSTED"
    #: Connecting and logging in, or the response to a command, took too long. The effect of the command is unknown.
    TIMEOUT = "TIMEOUT"
    #: The server does not offer a requested layer.
    NO_LAYER = "NO_LAYER"
    #: The function that provides tokens failed; `__cause__` is what it raised.
    NO_TOKEN = "NO_TOKEN"
    #: The server offers no method to log in that is safe to use here.
    NO_METHOD = "NO_METHOD"
    #: The server did not accept the credentials.
    LOGIN_FAILED = "LOGIN_FAILED"
    #: The server did not prove that it knows the password: it may not be the one you mean.
    SERVER_NOT_PROVEN = "SERVER_NOT_PROVEN"
    #: One side violated the protocol.
    PROTOCOL = "PROTOCOL"
    #: The server was silent for too long (`silence` of `connect`), and did not answer when it was asked.
    SILENT = "SILENT"
    #: Either end closed the connection. The effect of commands that waited for their response is unknown.
    CLOSED = "CLOSED"
    #: Another connection took over the channel.
    SUPERSEDED = "SUPERSEDED"
    #: The identity, or one of its rights, was withdrawn.
    WITHDRAWN = "WITHDRAWN"
    #: The channel was deleted, or has expired.
    CHANNEL_GONE = "CHANNEL_GONE"
    #: One of several addresses is that of another server.
    OTHER_SERVER = "OTHER_SERVER"

    def __str__(self) -> str:
        return self.value


class ConnectionError(CinnabarError):
    """There is no connection, or none any more; `code` says why."""

    code: ErrorCode

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code = code
        super().__init__(message)


class ProtocolError(CinnabarError):
    """Bytes that break a rule of the protocol. Users see it as the cause of a `ConnectionError` with the code PROTOCOL."""


#: Refusals that a server may lift later.
_TRANSIENT_STATUSES = frozenset({"BUSY", "INTERNAL", "NO_SUCH_METRIC", "QUOTA_EXCEEDED", "STORAGE_FULL"})

#: Another attempt would fail in the same way, or take the channel from another connection [MON 3.5].
_FINAL = frozenset(
    {
        ErrorCode.BAD_URL,
        ErrorCode.NO_LAYER,
        ErrorCode.NO_METHOD,
        ErrorCode.LOGIN_FAILED,
        ErrorCode.SERVER_NOT_PROVEN,
        ErrorCode.PROTOCOL,
        ErrorCode.SUPERSEDED,
        ErrorCode.WITHDRAWN,
        ErrorCode.CHANNEL_GONE,
        ErrorCode.OTHER_SERVER,
    }
)

#: Failures that a mistake causes. A consumer that was connected before outlasts them.
_MISTAKES = frozenset({ErrorCode.UNTRUSTED, ErrorCode.NO_TOKEN})

#: The reasons that a server gives for the end of a connection [MON 3.5].
_OF_NOTICE = {
    NoticeCode.SUPERSEDED: ErrorCode.SUPERSEDED,
    NoticeCode.WITHDRAWN: ErrorCode.WITHDRAWN,
    NoticeCode.CHANNEL_DELETED: ErrorCode.CHANNEL_GONE,
    NoticeCode.PROTOCOL_ERROR: ErrorCode.PROTOCOL,
}


def code_of_notice(notice: int) -> ErrorCode:
    """What the last notice of a connection says of its end. `notice`: 0 if there was none."""
    return {int(code): error for code, error in _OF_NOTICE.items()}.get(notice, ErrorCode.CLOSED)


def is_transient(error: Optional[BaseException]) -> bool:
    """Whether another attempt to connect may succeed."""
    if isinstance(error, ConnectionError):
        return error.code not in _FINAL or is_transient(error.__cause__)
    return isinstance(error, StatusError) and error.status in _TRANSIENT_STATUSES


def is_not_up(error: BaseException) -> bool:
    """Whether the server may just not be up yet."""
    return is_transient(error) and not (isinstance(error, ConnectionError) and error.code in _MISTAKES)
