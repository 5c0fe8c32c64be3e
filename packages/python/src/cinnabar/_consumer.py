"""A consumer: one channel of a server, taken up again after every lost connection.

Values come in the order of the channel, to the handler of their metric or to the loop over the consumer.
"""

from __future__ import annotations

import asyncio
from typing import Callable, Dict, List, Optional, Type, Union

from . import _commands
from ._awaited import AwaitedValues, check_done
from ._channel_options import ChannelOptions
from ._command_methods import NO_ARGUMENTS, CommandMethods
from ._connection import Connection, OnOk
from ._constants import ALL_CHANNELS, CURRENT_CHANNEL, Command
from ._mailbox import Mailbox, Reading
from ._messages import Capabilities, GapMessage, NoticeMessage, ValueMessage
from ._next_connection import NextConnection
from ._sample import SampleOrigin
from ._session import Session
from ._sessions import STEADY, Backoff, Sessions
from ._subscriptions import BoundMetric, Followed, Handler, Subscriptions, bindings_of
from ._values import Arguments, Value
from .errors import CinnabarError, ConnectionError, ErrorCode, StatusError, is_transient
from .events import (
    AnyEvent,
    Closed,
    Connected,
    Disconnected,
    Emitter,
    Event,
    Gap,
    Restored,
    Retrying,
    notice_of,
)

#: Seconds that a closing consumer waits for the handler of a value, and for the other end to close.
_PATIENCE = 1.0


class Consumer(CommandMethods):
    """What `connect` returns. Iterate over it for the values of its channel."""

    def __init__(self, sessions: Sessions, options: ChannelOptions, deadline: float) -> None:
        """Use `connect`."""
        self._sessions = sessions
        self._options = options
        self._emitter = Emitter()
        self._subscriptions = Subscriptions()
        self._awaited = AwaitedValues()
        self._next = NextConnection(deadline, sessions.url)
        after = options.after.transaction if options.after else 0
        self._mailbox = Mailbox(_Owner(self), self._subscriptions, self._awaited, after, options.commit == "explicit")
        self._channel = options.channel or CURRENT_CHANNEL
        #: The name of the channel, unless `set_channel` has left that.
        self._name = options.name
        self._connection: Optional[Connection] = None
        #: The connection that has the channel. It becomes `_connection` when everything followed is bound to the channel again.
        self._carrier: Optional[Connection] = None
        self._is_attached = False
        self._is_confidential = False
        self._is_ended = False
        self._error: Optional[BaseException] = None
        self._lost: Optional[asyncio.Future[ConnectionError]] = None
        self._keeping: Optional[asyncio.Task[None]] = None

    async def open(self) -> None:
        """Use `connect`."""
        try:
            await self._establish()
        except BaseException as error:
            self._is_ended, self._error = True, error
            raise
        self._keeping = asyncio.ensure_future(self._keep())

    # What it is

    @property
    def channel(self) -> int:
        """The id of the current channel."""
        return self._channel

    @property
    def generation(self) -> str:
        """Names the history of transaction ids of the server; empty if it does not name it. For `Place`."""
        capabilities = self._carrier.capabilities if self._carrier else None
        return capabilities.generation if capabilities else ""

    @property
    def capabilities(self) -> Optional[Capabilities]:
        """What the server supports; None while there is no connection."""
        return self._connection.capabilities if self._connection else None

    @property
    def is_confidential(self) -> bool:
        """Whether nobody on the way can read along: the connection is encrypted, or stays on this machine."""
        return self._is_confidential

    @property
    def unfollowed(self) -> List[BoundMetric]:
        """The metrics that the channel binds and this program does not follow.

        They may be those of an earlier version of it, or have other arguments. Their values come to the loop. `stop` ends them.
        """
        return self._subscriptions.unfollowed

    def name_of(self, metric: int) -> str:
        """The name of a metric that is followed, or that the channel binds; empty for other ids."""
        return self._subscriptions.name_of(metric)

    def __repr__(self) -> str:
        return f"<Consumer of channel {self._channel} at {self._sessions.url}>"

    # Values

    def on(self, event: Type[AnyEvent], listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Has `listener` called with each event of a class of `cinnabar.events`. Returns the function that removes it."""
        return self._emitter.on(event, listener)

    async def follow(self, metric: str, args: Arguments = NO_ARGUMENTS, handler: Optional[Handler] = None) -> Followed:
        """Has the values of a metric come to `handler`, or to the loop if there is none, also after lost connections.

        A binding that the channel already has with this name and these arguments is taken over; otherwise a new one is made.
        """
        followed = Followed(metric, args, handler, self._unfollow)
        bound = self._subscriptions.adopt(followed)
        try:
            if bound is None:
                await self._subscriptions.bind(self._request, followed)
            elif bound.mode != "subscribe":
                await self.subscribe(bound.id)
        except BaseException as error:
            if bound is not None:
                self._subscriptions.give_back(followed, bound)
            else:
                self._subscriptions.delete(followed)
                # The SUBSCRIBE may be on its way. If there is nothing to stop, that is fine.
                if isinstance(error, asyncio.CancelledError) and followed.id != 0 and self._connection is not None:
                    stopping = self._connection.request(Command.STOP, _commands.binding(followed.id, CURRENT_CHANNEL))
                    stopping.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        return followed

    def __aiter__(self) -> Reading:
        """Iterates over the values without a handler, for one reader at a time.

        A value is handled, and committed, when the next one is requested. One at which a loop was left by `break` or an error was
        not handled: it is the first of the next loop.
        """
        return self._mailbox.begin_reading()

    async def run(self) -> None:
        """Calls the handlers until `close`. Raises what a handler raises, or what ended the connection for good.

        Values that nobody follows are skipped and not committed.
        """
        await self._mailbox.run()

    async def commit(self, transaction: int, through: bool = False) -> None:
        """Commits one value, or with `through` that value and everything before it. Returns when that is stored.

        The COMMIT is repeated if the connection is lost before the response.
        """
        covers = self._mailbox.begin_commit(transaction, through)
        while True:
            try:
                await self._request(Command.COMMIT, _commands.commit(transaction, covers))
                return
            except ConnectionError as error:
                if error.code is ErrorCode.TIMEOUT or self._is_ended:
                    raise

    async def stop(self, metric: int, channel: int = CURRENT_CHANNEL) -> None:
        """Ends the values of a metric on a channel. Those queued there are dropped."""
        await super().stop(metric, channel)
        if channel in (CURRENT_CHANNEL, ALL_CHANNELS, self._channel):
            self._subscriptions.forget(metric)

    async def set_channel(self, channel: int) -> None:
        """Leaves the current channel for another. What was not handled stays there, and nothing is followed any more."""
        if channel in (CURRENT_CHANNEL, self._channel):
            return
        bound = await bindings_of(channel, self._query_value)
        await self._mailbox.committed()
        self._mailbox.suspend_commits(True)
        # It goes on if nobody waits for it any more: a COMMIT before the response would be for the other channel.
        await asyncio.shield(self._leave_for(channel, bound))

    async def _leave_for(self, channel: int, bound: Optional[Dict[int, BoundMetric]]) -> None:
        def switch_to(_: int) -> None:
            left = ConnectionError(ErrorCode.CLOSED, f"channel {self._channel} was left: the result waits there")
            self._awaited.reject(left, except_kept=False)
            self._channel = channel
            self._name = None
            self._mailbox.switch_channel()
            self._subscriptions.clear()
            self._subscriptions.reconcile(bound)

        try:
            await self._request(Command.SET_CHANNEL, _commands.channel(channel), switch_to)
        except ConnectionError as error:
            # It is unknown which channel this connection has now. The next one takes up the channel that we know of.
            if error.code is ErrorCode.TIMEOUT and self._connection is not None:
                self._connection.close(error)
            raise
        finally:
            self._mailbox.suspend_commits(False)

    # The end

    async def close(self) -> None:
        """Stops the reading, commits what was handled, and closes.

        It waits for a handler that runs in another task for one second at most; after that the value counts as not handled.
        """
        if self._keeping is not None:
            self._keeping.cancel()
        self._mailbox.end(None)
        try:
            await self._mailbox.idle(_PATIENCE)
            if self._connection is not None and not self._is_ended:
                await self._mailbox.committed()
        finally:  # Also if nobody waits for it any more: nothing may stay open.
            connection = self._connection
            self._end(None)
        if connection is not None:
            await connection.wait_closed(_PATIENCE)
        if self._keeping is not None:
            await asyncio.wait([self._keeping])

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Connections

    async def _request(self, command: Command, arguments: bytes, on_ok: Optional[OnOk] = None) -> int:
        if self._is_ended:
            raise self._reason
        connection = self._connection or await self._next.wait()
        return await connection.request(command, arguments, on_ok)

    async def _ask(self, command: Command, arguments: bytes) -> ValueMessage:
        is_kept = command is Command.EXECUTE and self._options.durable
        return await self._awaited.ask(self._request, command, arguments, is_kept)

    @property
    def _origin(self) -> SampleOrigin:
        return self._mailbox.origin

    @property
    def _reason(self) -> BaseException:
        """Why no more commands can be sent."""
        return self._error or ConnectionError(ErrorCode.CLOSED, f"{self._sessions.url}: this consumer was closed")

    async def _unfollow(self, followed: Followed) -> None:
        try:
            # The metric may get another id on the next connection.
            if self._connection is None and not self._is_ended:
                await self._next.wait()
            await self.stop(followed.id)
        except ConnectionError:
            # A channel that is not durable ends with its connection, and the next one is not to bind this metric.
            if self._options.durable:
                raise
        self._subscriptions.stopped(followed)

    async def _keep(self) -> None:
        """Makes the next connection whenever one is lost."""
        backoff = Backoff()
        loop = asyncio.get_running_loop()
        attempts = 0
        connected = loop.time()
        reason: Optional[CinnabarError] = None
        while not self._is_ended:
            if reason is None and self._lost is not None:
                reason = await self._lost
                if loop.time() - connected >= STEADY:
                    backoff.reset()
                attempts = 0
            if reason is None:
                return
            delay = backoff.next()
            attempts += 1
            self._emit(Retrying(attempts, delay, reason))
            if self._is_ended:
                return
            await asyncio.sleep(delay)
            try:
                await self._establish()
            except CinnabarError as error:
                if not is_transient(error):
                    self._end(error)
                reason = error
            except Exception as error:
                self._end(error)
            else:
                reason = None
                connected = loop.time()
                self._emit(Connected(self._channel))

    async def _establish(self) -> None:
        """Connects, logs in, and makes everything as it was on the last connection."""
        # It may be lost before this is over.
        self._lost = asyncio.get_running_loop().create_future()
        session = await self._sessions.next(_Listener(self))
        connection = session.connection
        try:
            await self._restore(session)
            if connection.ended is not None:
                raise connection.ended
            # Before Python 3.12 `asyncio.wait_for` may lose the cancellation by `_end`.
            if self._is_ended:
                raise self._reason
        except BaseException:
            connection.close()
            raise
        self._is_attached = True
        self._is_confidential = session.is_confidential
        self._connection = connection
        if self._mailbox.is_held:
            connection.hold(True, self._options.durable)
        self._next.settle(connection)

    async def _restore(self, session: Session) -> None:
        """Takes up the channel of the last connection, and binds what is no longer bound to it."""
        connection = session.connection
        missing: List[Followed] = []

        def send(command: Command, arguments: bytes, on_ok: OnOk) -> asyncio.Future[int]:
            return connection.request(command, arguments, on_ok)

        async def query(metric: str, args: Arguments) -> Value:
            return (await self._awaited.ask(send, Command.QUERY, _commands.named(metric, args), is_kept=False)).value

        def switch_to(id: int, bound: Optional[Dict[int, BoundMetric]]) -> None:
            """Must run at once: values may follow directly after the response that made the channel current."""
            nonlocal missing
            # Where the server does not report what a channel binds: another one than before binds none of the ids that are known.
            known = {} if bound is None and id != self._channel else bound
            self._became(connection, id)
            missing = self._subscriptions.reconcile(known)

        is_other = self._sessions.has_several_addresses and await self._is_other_generation(connection)
        channel = self._channel
        if self._name is not None and not is_other:
            channel = await connection.request(Command.DEF_CHANNEL, _commands.named("", {"name": self._name}))
        if not self._options.durable:
            arguments = _commands.named("channel.configure", {"channel": session.channel, "durable": False})
            result = await self._awaited.ask(send, Command.EXECUTE, arguments, is_kept=False)
            check_done(result)
            switch_to(session.channel, {})
        elif channel == CURRENT_CHANNEL:
            switch_to(session.channel, {})
        else:
            bound = await bindings_of(channel, query)
            if not await self._take_up(connection, channel, is_other, lambda _: switch_to(channel, bound)):
                switch_to(session.channel, {})
        for followed in missing:
            # Some may have been stopped meanwhile.
            if self._subscriptions.is_followed(followed):
                await self._subscriptions.bind(send, followed)

    async def _take_up(self, connection: Connection, channel: int, is_other: bool, on_ok: OnOk) -> bool:
        """Returns False if the channel is gone and nothing was lost with it. `is_other`: see `_is_other_generation`."""
        try:
            await connection.request(Command.SET_CHANNEL, _commands.channel(channel), on_ok)
            return True
        except StatusError as error:
            if error.status != "NO_SUCH_CHANNEL" or not (self._is_attached or is_other):
                raise
            if is_other:
                what = f"this is another server than at the other addresses: it has another generation and no channel {channel}"
                unless = "or it was restored from a backup that is older than the channel"
                raise ConnectionError(ErrorCode.OTHER_SERVER, f"{connection.peer}: {what}, {unless}") from error
            if self._subscriptions.is_empty:
                return False
            gone = f"channel {channel} is gone: it was deleted, or was unused for too long"
            raise ConnectionError(ErrorCode.CHANNEL_GONE, gone) from error

    def _known_generation(self) -> Optional[str]:
        """The generation of the ids that we know; None if we know none."""
        if self._carrier is not None:
            return self.generation
        return self._options.after.generation if self._options.after else None

    async def _is_other_generation(self, connection: Connection) -> bool:
        """Whether the server has another generation than the one whose channel we have.

        It was restored from a backup, or it is another one. Then the channel has to be taken up by its id, which a backup has and
        another server has not.
        """
        generation = (await connection.ready()).generation
        known = self._known_generation()
        return self._options.durable and self._channel != CURRENT_CHANNEL and known is not None and known != generation

    def _became(self, connection: Connection, channel: int) -> None:
        """The connection has this channel. Everything that it receives from now on belongs to that."""
        before = self._known_generation()
        self._carrier = connection
        is_other = before is not None and before != self.generation
        if channel == self._channel or not self._options.durable:
            self._mailbox.reconnected()
        elif self._channel != CURRENT_CHANNEL:
            gone = ConnectionError(ErrorCode.CHANNEL_GONE, f"channel {self._channel} is gone, and the result with it")
            self._awaited.reject(gone, except_kept=False)
            self._mailbox.switch_channel()
        self._channel = channel
        # Transaction ids of another generation tell nothing about what was handled.
        if is_other and before is not None:
            self._mailbox.begin_generation(before, self.generation)

    def _closed(self, connection: Connection, reason: ConnectionError, is_ours: bool) -> None:
        continues = self._options.reconnect and not is_ours and self._sessions.may_continue(reason)
        self._awaited.reject(reason, except_kept=self._options.durable)
        if connection is not self._connection:
            return
        self._connection = None
        if not continues:
            self._end(None if is_ours else reason)
            return
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(reason)
        self._emit(Disconnected(reason))

    def _end(self, error: Optional[BaseException]) -> None:
        if self._is_ended:
            return
        self._is_ended, self._error = True, error
        reason = self._reason
        self._mailbox.end(error)
        self._awaited.reject(_as_ours(reason), except_kept=False)
        self._next.settle(reason)
        if self._connection is not None:
            self._connection.close()
        if self._keeping is not None and self._keeping is not asyncio.current_task():
            self._keeping.cancel()
        self._emit(Closed(error))

    def _emit(self, event: Event) -> None:
        """A listener that fails ends the consumer."""
        try:
            self._emitter.emit(event)
        except Exception as error:
            self._end(error)

    async def _query_value(self, metric: str, args: Arguments) -> Value:
        return (await self.query(metric, args)).value


class _Listener:
    """What a connection tells its consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def message(self, message: Union[ValueMessage, GapMessage]) -> None:
        self._consumer._mailbox.receive(message)

    def notice(self, notice: NoticeMessage) -> None:
        self._consumer._emit(notice_of(notice))

    def closed(self, connection: Connection, reason: ConnectionError, is_ours: bool) -> None:
        self._consumer._closed(connection, reason, is_ours)


class _Owner:
    """What a mailbox needs of its consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    @property
    def generation(self) -> str:
        return self._consumer.generation

    def emit(self, event: Union[Gap, Restored]) -> None:
        self._consumer._emitter.emit(event)

    def hold(self, is_held: bool) -> None:
        connection = self._consumer._connection
        if connection is not None:
            connection.hold(is_held, self._consumer._options.durable)

    def send_commit(self, transaction: int, through: bool) -> asyncio.Future[int]:
        carrier = self._consumer._carrier
        if carrier is None:
            raise RuntimeError("nothing can have come before there was a connection")
        return carrier.request(Command.COMMIT, _commands.commit(transaction, through))

    def failed(self, error: BaseException) -> None:
        self._consumer._end(error)


def _as_ours(error: BaseException) -> CinnabarError:
    return error if isinstance(error, CinnabarError) else ConnectionError(ErrorCode.CLOSED, str(error))
