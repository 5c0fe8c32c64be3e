"""The events of a consumer: what it reports beside its values. `Consumer.on` takes a class of these and a listener."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar, Union

from ._constants import GAP_REASONS, NoticeCode
from ._messages import GapMessage, NoticeMessage
from .errors import CinnabarError, ConnectionError


@dataclass(frozen=True)
class Gap:
    """Values were lost. The event comes in its place between the values."""

    #: The metric as it was followed; empty if several have lost values.
    metric: str
    #: The id of the metric; 0 if several have lost values.
    id: int
    #: The id that `commit` takes.
    transaction: int
    #: How many values; 0 if that is unknown.
    count: int
    #: The times of the first and the last loss, in microseconds since 1970; 0 if they are unknown.
    first: int
    last: int
    #: A word of the protocol such as "overflow", or the number of a reason that this version does not know.
    reason: Union[str, int]


@dataclass(frozen=True)
class Notice:
    """A notice of the server."""

    #: A word of the protocol such as "WINDOW_FULL", or the number of a code that this version does not know.
    code: Union[str, int]
    channel: int
    detail: str


@dataclass(frozen=True)
class Restored:
    """The server was restored from a backup, or another one has taken its place.

    Nothing that was handled before is known by its transaction id any more, and some of it may come again. The event comes
    before the first value of the new generation.
    """

    before: str
    generation: str


@dataclass(frozen=True)
class Disconnected:
    """The connection is lost, and another one is being made."""

    error: ConnectionError


@dataclass(frozen=True)
class Retrying:
    """Another attempt to connect is going to be made."""

    #: 1 for the first after the connection was lost, or after the first attempt has failed.
    attempt: int
    #: Seconds until then.
    delay: float
    #: Why there is no connection.
    error: CinnabarError


@dataclass(frozen=True)
class Connected:
    """There is a connection again."""

    channel: int


@dataclass(frozen=True)
class Closed:
    """The consumer has ended. `error` is None if `close` was called."""

    error: Optional[BaseException]


Event = Union[Gap, Notice, Restored, Disconnected, Retrying, Connected, Closed]
AnyEvent = TypeVar("AnyEvent", Gap, Notice, Restored, Disconnected, Retrying, Connected, Closed)


class Emitter:
    """Calls the listeners of each event. What a listener raises reaches whoever caused the event."""

    def __init__(self) -> None:
        self._listeners: Dict[type, List[Callable[[Any], object]]] = {}

    def on(self, event: Type[AnyEvent], listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Returns the function that removes the listener."""
        listeners = self._listeners.setdefault(event, [])
        listeners.append(listener)

        def remove() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return remove

    def emit(self, event: Event) -> None:
        for listener in list(self._listeners.get(type(event), ())):
            listener(event)


def gap_of(message: GapMessage, metric: str) -> Gap:
    """`metric`: the name of the metric."""
    reason = GAP_REASONS.get(message.reason, message.reason)
    return Gap(metric, message.metric, message.transaction, message.count, message.first, message.last, reason)


def notice_of(message: NoticeMessage) -> Notice:
    known = {int(code): code.name for code in NoticeCode}
    return Notice(known.get(message.code, message.code), message.channel, message.detail)
