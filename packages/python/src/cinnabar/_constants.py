"""The numbers of the Monitoring Protocol: commands, messages, statuses, notices, reasons and basic types [MON 2 to 5]."""

from __future__ import annotations

from enum import IntEnum


class Command(IntEnum):
    NOP = 0
    COLLECT = 1
    STOP = 2
    SUBSCRIBE = 3
    BUFFER = 4
    GET = 5
    AUTH = 6
    DEF_CHANNEL = 7
    SET_CHANNEL = 8
    DEL_CHANNEL = 9
    COMMIT = 10
    EXECUTE = 11
    QUERY = 12
    WRAP = 13


class MessageId(IntEnum):
    RESPONSE = 0xFFFFFFFF
    PRODUCER_CAPS = 0xFFFFFFFE
    AUTH = 0xFFFFFFFD
    GAP = 0xFFFFFFFC
    NOTICE = 0xFFFFFFFB


class Status(IntEnum):
    OK = 0
    AUTH_NEEDED = 1
    AUTH_FAILED = 2
    NOT_AUTHENTICATED = 3
    ALREADY_AUTHENTICATED = 4
    UNKNOWN_COMMAND = 5
    INVALID_ARGUMENT = 6
    NO_SUCH_METRIC = 7
    NO_SUCH_ID = 8
    NO_SUCH_CHANNEL = 9
    NO_SUCH_CONTROL = 10
    PERMISSION_DENIED = 11
    UNSUPPORTED = 12
    BUSY = 13
    NO_SUCH_TRANSACTION = 14
    INTERNAL = 15
    QUOTA_EXCEEDED = 16
    STORAGE_FULL = 17


class NoticeCode(IntEnum):
    WINDOW_FULL = 1
    SUPERSEDED = 2
    SHUTTING_DOWN = 3
    WITHDRAWN = 4
    CHANNEL_DELETED = 5
    PROTOCOL_ERROR = 6
    INTERNAL = 7


#: The words for the reasons of a GAP [MON 3.4].
GAP_REASONS = {
    1: "overflow",
    2: "expired",
    3: "damaged",
    4: "purged",
    5: "restart",
    6: "full",
    7: "restored",
    8: "paused",
    9: "replaced",
}


class BasicType(IntEnum):
    """The type of a value [MON 2.3]."""

    INT32 = 1
    UINT32 = 2
    INT64 = 3
    UINT64 = 4
    DOUBLE = 5
    BOOLEAN = 6
    STRING = 7
    OPAQUE = 8
    REC = 9
    ARRAY = 10
    VOID = 11


#: Ids of metrics, results and channels are 1 to this.
MAX_ID = 0x7FFFFFFF
CURRENT_CHANNEL = 0
ALL_CHANNELS = 0xFFFFFFFF
DEFAULT_PORT = 7650
