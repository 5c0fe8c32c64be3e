"""Commands that are called while there is no connection wait here for the next one."""

from __future__ import annotations

import asyncio
from typing import Set, Union

from ._connection import Connection
from .errors import ConnectionError, ErrorCode


class NextConnection:
    def __init__(self, deadline: float, url: str) -> None:
        """`deadline`: seconds that a command waits."""
        self._deadline = deadline
        self._url = url
        self._waiting: Set[asyncio.Future[Connection]] = set()

    async def wait(self) -> Connection:
        """Raises `ConnectionError` TIMEOUT if there is none in time, and what `settle` is given if there will be none."""
        waiting: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            return await asyncio.wait_for(waiting, self._deadline)
        except asyncio.TimeoutError:
            late = f"{self._url}: there was no connection for {self._deadline:g} seconds"
            raise ConnectionError(ErrorCode.TIMEOUT, late) from None
        finally:
            self._waiting.discard(waiting)

    def settle(self, next: Union[Connection, BaseException]) -> None:
        """There is a connection, or there will be none."""
        for waiting in self._waiting:
            if waiting.done():
                continue
            if isinstance(next, BaseException):
                waiting.set_exception(next)
            else:
                waiting.set_result(next)
