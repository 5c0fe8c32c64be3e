"""The values that commands wait for: the answer to a QUERY, which is lost with the connection, and the result of EXECUTE."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Awaitable, Callable, Dict

from ._connection import OnOk
from ._constants import Command
from ._messages import ValueMessage
from .errors import CinnabarError, ConnectionError, ErrorCode

#: Sends one command and gives the result. `on_ok` is called while the response is read.
SendCommand = Callable[[Command, bytes, OnOk], Awaitable[int]]


@dataclass(frozen=True)
class _Awaited:
    value: asyncio.Future[ValueMessage]
    #: Whether the value is kept on the channel, so that it outlives the connection.
    is_kept: bool


class AwaitedValues:
    def __init__(self) -> None:
        self._by_id: Dict[int, _Awaited] = {}

    async def ask(self, send: SendCommand, command: Command, arguments: bytes, is_kept: bool) -> ValueMessage:
        """Sends a command and waits for the value whose id is the result of the command."""
        value: asyncio.Future[ValueMessage] = asyncio.get_running_loop().create_future()

        def expect(id: int) -> None:
            self._by_id[id] = _Awaited(value, is_kept)

        try:
            await send(command, arguments, expect)
            return await value
        finally:
            # If nobody waits any more, the value comes all the same, and belongs to nobody.
            value.cancel()

    def take(self, message: ValueMessage) -> str:
        """Hands the value to the command that waits for it.

        "" if it is no command's, "handed", or "unwanted" if the command was given up.
        """
        awaited = self._by_id.pop(message.metric, None)
        if awaited is None:
            return ""
        if awaited.value.done():
            return "unwanted"
        awaited.value.set_result(message)
        return "handed"

    def reject(self, error: CinnabarError, except_kept: bool) -> None:
        """Fails all that wait except, with `except_kept`, for values that are kept on the channel."""
        for id, awaited in list(self._by_id.items()):
            if except_kept and awaited.is_kept:
                continue
            del self._by_id[id]
            if not awaited.value.done():
                awaited.value.set_exception(error)


def check_done(result: ValueMessage) -> None:
    """Raises `ConnectionError` unless the control that makes a channel non-durable has done so."""
    fields = result.value.plain
    if isinstance(fields, dict) and fields.get("outcome") == "ok":
        return
    why = str(fields.get("detail")) if isinstance(fields, dict) else ""
    raise ConnectionError(ErrorCode.CLOSED, f"the server could not make the channel non-durable: {why}")
