"""The commands of a consumer as methods [MON 2]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import AsyncIterator, Callable, Mapping, Optional

from . import _commands
from ._connection import OnOk
from ._constants import CURRENT_CHANNEL, Command
from ._expression import ExpressionResult, expression_arguments, read_expression
from ._history import LossRange, SeriesHistory, history_arguments, read_history
from ._messages import ValueMessage
from ._sample import Sample, SampleOrigin
from ._times import Time
from ._values import Arguments

NO_ARGUMENTS: Arguments = {}


class CommandMethods(ABC):
    """All commands raise `StatusError` if the server refuses them, and `ConnectionError` if the connection is lost before the
    response or there is none in time: then their effect is unknown.

    They may be called without waiting for each other, and wait for the next connection while there is none.
    """

    @abstractmethod
    async def _request(self, command: Command, arguments: bytes, on_ok: Optional[OnOk] = None) -> int:
        """Sends one command and gives the result. `on_ok` is called while the response is read."""

    @abstractmethod
    async def _ask(self, command: Command, arguments: bytes) -> ValueMessage:
        """Sends QUERY or EXECUTE and gives the value that answers it."""

    @property
    @abstractmethod
    def _origin(self) -> SampleOrigin:
        """What the results of controls refer to."""

    async def collect(self, metric: str, args: Arguments = NO_ARGUMENTS) -> int:
        """Makes a metric instance and returns its id. Nothing is measured before it is bound."""
        return await self._request(Command.COLLECT, _commands.named(metric, args))

    async def subscribe(self, metric: int, channel: int = CURRENT_CHANNEL) -> None:
        """Has the values of a metric sent as they come. `follow` does this, and renews it after a lost connection."""
        await self._request(Command.SUBSCRIBE, _commands.binding(metric, channel))

    async def buffer(self, metric: int, channel: int = CURRENT_CHANNEL) -> None:
        """Has the values of a metric wait on the channel for `get`."""
        await self._request(Command.BUFFER, _commands.binding(metric, channel))

    async def get(self, metric: int, channel: int = CURRENT_CHANNEL) -> None:
        """Has the waiting values sent, and a continuous metric measured now."""
        await self._request(Command.GET, _commands.binding(metric, channel))

    async def stop(self, metric: int, channel: int = CURRENT_CHANNEL) -> None:
        """Ends the values of a metric on a channel. Those queued there are dropped."""
        await self._request(Command.STOP, _commands.binding(metric, channel))

    async def def_channel(self, url: str = "", args: Arguments = NO_ARGUMENTS) -> int:
        """Defines a channel that outlives every connection, or finds the one of the argument `name`. Returns its id."""
        return await self._request(Command.DEF_CHANNEL, _commands.named(url, args))

    async def del_channel(self, channel: int = CURRENT_CHANNEL) -> None:
        """Deletes a channel. To delete the current channel ends the connection."""
        await self._request(Command.DEL_CHANNEL, _commands.channel(channel))

    async def query(self, metric: str, args: Arguments = NO_ARGUMENTS) -> Sample:
        """One value of a continuous metric, of type VOID if it could not be measured."""
        return _sample(metric, await self._ask(Command.QUERY, _commands.named(metric, args)), SampleOrigin())

    def history(
        self,
        metric: str,
        *,
        labels: Optional[Mapping[str, str]] = None,
        since: Optional[Time] = None,
        until: Optional[Time] = None,
        step: Optional[int] = None,
        on_loss: Optional[Callable[[LossRange], None]] = None,
        with_families: bool = False,
        in_pieces: bool = False,
    ) -> AsyncIterator[SeriesHistory]:
        """What the server remembers of a metric or a pattern: series with their samples, each series once.

        It shows the state at the beginning. `labels`: only series with these texts, or texts that match a pattern; the empty text:
        without the label; `producer` names a server that this one consumes, which is asked for what it remembers. `since` and `until`: the times of the first and the last sample, microseconds since 1970 or datetimes with
        a time zone; until now, and an hour before that, if they are left out. `step`: how far apart values may be, in microseconds;
        from five minutes on there are windows in place of samples, below that where samples have gone. `on_loss` is given the ranges
        in which values are missing, those of a tenant before its series. With `with_families` each series has its `family`: what is
        known of its metric. With `in_pieces` a long series comes in several
        pieces, one after the other, as they arrive: then nothing has to fit into memory. After an error, begin again.
        """
        arguments = history_arguments(metric, labels, since, until, step, on_loss is not None, with_families)
        return read_history(self.query, arguments, in_pieces, on_loss)

    async def evaluate(
        self,
        expr: str,
        *,
        at: Optional[Time] = None,
        since: Optional[Time] = None,
        until: Optional[Time] = None,
        step: Optional[int] = None,
        limit: Optional[int] = None,
        on_loss: Optional[Callable[[LossRange], None]] = None,
    ) -> ExpressionResult:
        """What an expression of PromQL comes to over what the server remembers: at a time, or from `since` on at each `step`.

        `at`: the time, microseconds since 1970 or a datetime with a time zone; now, if neither it nor `since` is given. `until`: no
        time of a range is later; now, if it is not given. `step`: between two times of a range, in microseconds; whole milliseconds
        count. `limit`: the most series; a warning says if there are more. `on_loss` is given the ranges in which values of
        the selected metrics are missing, as far as they overlap the time or the range that is asked for. Raises `ExpressionError`.
        Whoever gives up has the server end the query within ten seconds.
        """
        arguments = expression_arguments(expr, at, since, until, step, limit, on_loss is not None)
        return await read_expression(self.query, arguments, on_loss)

    async def execute(self, control: str, args: Arguments = NO_ARGUMENTS) -> Sample:
        """Runs a control and returns the value with its result, which is committed.

        If the connection is lost meanwhile, the result comes on the next one.
        """
        result = await self._ask(Command.EXECUTE, _commands.named(control, args))
        return _sample(control, result, self._origin)

    async def nop(self) -> None:
        """Returns when the server has answered, which proves that it is there."""
        await self._request(Command.NOP, b"")


def _sample(name: str, message: ValueMessage, origin: SampleOrigin) -> Sample:
    return Sample(name, message.metric, message.transaction, message.time, message.value, origin)
