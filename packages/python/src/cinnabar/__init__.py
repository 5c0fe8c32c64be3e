"""The consumer's side of the Monitoring Protocol, for asyncio: durable, acknowledged channels of a Cinnabar server.

    async with cinnabar.connect("tcp://127.0.0.1:7650", identity="alice", password="...", name="load") as consumer:
        await consumer.follow("host.load.one")
        async for sample in consumer:
            print(sample.time, sample.plain)
"""

from ._connect import Connecting, connect
from ._constants import BasicType
from ._consumer import Consumer
from ._credentials import Token, TokenSource, new_token
from ._expression import ExpressionResult, ExpressionSeries
from ._history import LossRange, SeriesFamily, SeriesHistory, SeriesWindow
from ._messages import Capabilities
from ._sample import Place, Sample
from ._subscriptions import BoundMetric, Followed, Handler
from ._values import VOID, Arguments, ArgumentValue, Array, Field, Plain, Value
from .errors import CinnabarError, ConnectionError, ErrorCode, ExpressionError, StatusError
from .events import Closed, Connected, Disconnected, Gap, Notice, Restored, Retrying

__all__ = [
    "VOID",
    "ArgumentValue",
    "Arguments",
    "Array",
    "BasicType",
    "BoundMetric",
    "Capabilities",
    "CinnabarError",
    "Closed",
    "Connected",
    "Connecting",
    "ConnectionError",
    "Consumer",
    "Disconnected",
    "ErrorCode",
    "ExpressionError",
    "ExpressionResult",
    "ExpressionSeries",
    "Field",
    "Followed",
    "Gap",
    "Handler",
    "LossRange",
    "Notice",
    "Place",
    "Plain",
    "Restored",
    "Retrying",
    "Sample",
    "SeriesFamily",
    "SeriesHistory",
    "SeriesWindow",
    "StatusError",
    "Token",
    "TokenSource",
    "Value",
    "connect",
    "new_token",
]
