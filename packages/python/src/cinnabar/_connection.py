"""One connection to a server: it sends commands, reads messages, and matches responses to commands by seq [MON 2, 3].

What a response changes is changed while it is read, in `on_ok`: values that it caused may follow it directly, long before
any task that waits for it goes on.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Protocol, Set, Union, cast

from . import _commands
from ._constants import Command, NoticeCode, Status
from ._deflate import Deflate
from ._flow_control import FlowControl
from ._framing import MAX_FRAME_BYTES, Framer
from ._messages import (
    Capabilities,
    Challenge,
    GapMessage,
    Message,
    NoticeMessage,
    Response,
    ValueMessage,
    read_message,
)
from .errors import CinnabarError, ConnectionError, ErrorCode, ProtocolError, StatusError, code_of_notice

OnOk = Callable[[int], None]

#: Commands that may hold a secret after a compressing layer was added: AUTH is over by then.
_SECRETIVE = frozenset({Command.EXECUTE, Command.DEF_CHANNEL})


class ConnectionListener(Protocol):
    """Receives what the server sends on a connection. Nothing here may raise."""

    def message(self, message: Union[ValueMessage, GapMessage]) -> None:
        ...

    def notice(self, notice: NoticeMessage) -> None:
        ...

    def closed(self, connection: Connection, reason: ConnectionError, is_ours: bool) -> None:
        """Called once. `is_ours`: the connection was closed by `close` without an error."""


@dataclass(frozen=True)
class Admitted:
    """The answer to the last AUTH: the id of the channel that the server has made for the connection."""

    channel: int


@dataclass
class _Pending:
    """A command that waits for its response."""

    due: float
    answered: Callable[[Response], None]
    reject: Callable[[CinnabarError], None]


class Connection(asyncio.Protocol):
    def __init__(self, peer: str, deadline: float, listener: ConnectionListener) -> None:
        """`peer`: the other end and the user, as errors name them. `deadline`: seconds that a response may take."""
        self.peer = peer
        #: The latest; None until the first have come.
        self.capabilities: Optional[Capabilities] = None
        #: Why it has ended.
        self.ended: Optional[ConnectionError] = None
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._listener = listener
        self._transport: Optional[asyncio.Transport] = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._flow: Optional[FlowControl] = None
        self._framer = Framer()
        self._deflate: Optional[Deflate] = None
        self._output = bytearray()
        #: By seq. All have the same deadline, so the first is always the first to expire.
        self._pending: Dict[int, _Pending] = {}
        #: The seqs of commands that have expired. A response to one of these may still come.
        self._expired: Set[int] = set()
        self._timer: Optional[asyncio.TimerHandle] = None
        self._seq = 0
        self._challenge: Optional[asyncio.Future[Union[Challenge, Admitted]]] = None
        self._is_admitted = False
        self._last_notice: Optional[NoticeMessage] = None
        self._ready: asyncio.Future[Capabilities]
        self._expect_capabilities()

    async def ready(self) -> Capabilities:
        """The first capabilities after the beginning, after the login, or under TLS, whichever came last."""
        return await asyncio.shield(self._ready)

    @property
    def transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise RuntimeError("the connection has no transport yet")
        return self._transport

    def request(self, command: Command, arguments: bytes = b"", on_ok: Optional[OnOk] = None) -> asyncio.Future[int]:
        """Sends a command. The future has the result, or `StatusError` or `ConnectionError`."""
        future: asyncio.Future[int] = self._loop.create_future()

        def answered(response: Response) -> None:
            if response.status != Status.OK:
                _reject(future, StatusError(command.name, response.status, response.detail))
                return
            if on_ok is not None:
                on_ok(response.result)
            if not future.done():
                future.set_result(response.result)

        self._write(command, arguments, answered, lambda error: _reject(future, error))
        return future

    def authenticate(self, method: str, data: bytes, is_last: bool) -> asyncio.Future[Union[Challenge, Admitted]]:
        """One step of a login. `is_last`: the server has proven what it has to, so OK admits us.

        Before that nothing that it sends is accepted as values. The future fails as that of `request`.
        """
        future: asyncio.Future[Union[Challenge, Admitted]] = self._loop.create_future()

        def answered(response: Response) -> None:
            if response.status == Status.AUTH_NEEDED:
                self._challenge = future
            elif response.status != Status.OK:
                _reject(future, StatusError(Command.AUTH.name, response.status, response.detail))
            else:
                self._is_admitted = is_last
                self._framer.max_frame_bytes = MAX_FRAME_BYTES
                self._expect_capabilities()
                if not future.done():
                    future.set_result(Admitted(response.result))

        self._write(Command.AUTH, _commands.auth(method, data), answered, lambda error: _reject(future, error))
        return future

    async def add_tls(self, context: ssl.SSLContext, server_hostname: str) -> None:
        """Adds the layer `tls` [MON 12]. Raises `StatusError`, `ConnectionError`, or what the handshake raises."""
        plain = self.transport
        rest = b""

        def begin(_: int) -> None:
            nonlocal rest
            rest = self._framer.take_rest()
            plain.pause_reading()

        await self.request(Command.WRAP, _commands.layer("tls"), begin)
        if rest:
            what = "the server sent something in the clear after its response to WRAP; somebody may be in between"
            raise ConnectionError(ErrorCode.PROTOCOL, f"{self.peer}: {what}")
        # What was said in the clear may be somebody else's word.
        self.capabilities = None
        self._expect_capabilities()
        transport = await self._loop.start_tls(plain, self, context, server_hostname=server_hostname)
        self._transport = transport

    async def add_deflate(self) -> None:
        """Adds the layer `deflate`. Raises `StatusError` or `ConnectionError`."""

        def begin(_: int) -> None:
            self._deflate = Deflate()
            rest = self._framer.take_rest()
            for piece in self._deflate.decompress(rest):
                self._framer.feed(piece)

        await self.request(Command.WRAP, _commands.layer("deflate"), begin)

    def hold(self, is_held: bool, is_bounded: bool) -> None:
        """See `FlowControl`."""
        if self._flow is not None:
            self._flow.hold(is_held, is_bounded)

    def allow_silence(self, seconds: float) -> None:
        """How long the server may be silent from now on; after half of it a NOP asks whether it is there."""
        if self._flow is not None:
            self._flow.allow_silence(seconds)

    def close(self, error: Optional[ConnectionError] = None) -> None:
        """Sends what was written and closes. Everything that waits fails with the error or, without one, as closed from here."""
        if self.ended is not None:
            return
        self._flush()
        ended = error or self._error(ErrorCode.CLOSED, "is no longer connected: the connection was closed from this side")
        self.ended = ended
        if self._flow is not None:
            self._flow.end()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
        _reject(self._ready, ended)
        if self._challenge is not None:
            _reject(self._challenge, ended)
        pending, self._pending = self._pending, {}
        for command in pending.values():
            command.reject(ended)
        self._listener.closed(self, ended, error is None)

    async def wait_closed(self, patience: float) -> None:
        """Waits until the transport is gone, and cuts it off after so many seconds."""
        if self._transport is None:
            return
        await asyncio.wait([self._lost], timeout=patience)
        if not self._lost.done():
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._flow = FlowControl(
            pause=lambda: self.transport.pause_reading(),
            resume=lambda: self.transport.resume_reading(),
            is_response_due=lambda: len(self._pending) > 0,
            probe=self._probe,
            dead=lambda silent: self._fail(ErrorCode.SILENT, f"has not answered for {silent:g} seconds"),
        )

    def data_received(self, data: bytes) -> None:
        if self.ended is not None:
            return
        if self._flow is not None:
            self._flow.received(len(data))
        try:
            pieces = (data,) if self._deflate is None else self._deflate.decompress(data)
            for piece in pieces:
                self._framer.feed(piece)
                self._take_frames()
        except ProtocolError as error:
            hint = "" if self.capabilities else ". Is it a Monitoring Protocol server?"
            self._fail(ErrorCode.PROTOCOL, f"sent a message that violates the protocol: {error}{hint}", error)

    def connection_lost(self, error: Optional[Exception]) -> None:
        if not self._lost.done():
            self._lost.set_result(None)
        notice = self._last_notice
        why = notice.detail if notice and notice.detail else str(error or "")
        code = code_of_notice(notice.code if notice else 0)
        self._fail(code, f"closed the connection: {why}" if why else "closed the connection", error)

    # What is sent

    def _write(
        self,
        command: Command,
        arguments: bytes,
        answered: Callable[[Response], None],
        reject: Callable[[CinnabarError], None],
    ) -> None:
        if self.ended is not None:
            reject(self.ended)
            return
        limit = self.capabilities.max_frame_bytes if self.capabilities else 0
        if limit and 8 + len(arguments) > limit:
            raise ValueError(f"{command.name} would take {8 + len(arguments)} bytes; the server accepts at most {limit}")
        is_secret = self._deflate is not None and command in _SECRETIVE
        if is_secret:
            self._flush()
        now = self._loop.time()
        seq = self._next_seq()
        self._pending[seq] = _Pending(now + self._deadline, answered, reject)
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._deadline, self._expire)
        # All commands of one turn are sent together.
        if not self._output:
            self._loop.call_soon(self._flush)
        self._output += _commands.write_command(command, seq, arguments)
        if is_secret:
            self._flush(is_secret=True)
        self._update_flow()

    def _flush(self, is_secret: bool = False) -> None:
        if self.ended is not None or self._transport is None or not self._output:
            return
        data = bytes(self._output)
        self._output.clear()
        self._transport.write(data if self._deflate is None else self._deflate.compress(data, is_secret))

    def _next_seq(self) -> int:
        """One that has no response to come any more."""
        while True:
            self._seq = (self._seq + 1) & 0xFFFFFFFF
            if self._seq not in self._pending and self._seq not in self._expired:
                return self._seq

    def _expire(self) -> None:
        self._timer = None
        # Timers may run a little early.
        now = self._loop.time() + 0.001
        for seq, command in list(self._pending.items()):
            if command.due > now:
                self._timer = self._loop.call_at(command.due, self._expire)
                return
            del self._pending[seq]
            self._expired.add(seq)
            command.reject(self._error(ErrorCode.TIMEOUT, f"has not answered a command for {self._deadline:g} seconds"))

    def _probe(self) -> None:
        self._write(Command.NOP, b"", lambda _: None, lambda _: None)

    # What is received

    def _take_frames(self) -> None:
        while self.ended is None:
            payload = self._framer.next()
            if payload is None:
                return
            self._message(read_message(payload))

    def _message(self, message: Message) -> None:
        if self.capabilities is None and not isinstance(message, Capabilities):
            self._fail(ErrorCode.PROTOCOL, f"began with {type(message).__name__} instead of its capabilities")
        elif isinstance(message, (ValueMessage, GapMessage)):
            # An unproven peer could exhaust our memory with them, or make us believe false values.
            if self._is_admitted:
                self._listener.message(message)
            else:
                self._fail(ErrorCode.PROTOCOL, "sent values before the login")
        elif isinstance(message, Response):
            self._response(message)
        elif isinstance(message, Capabilities):
            self.capabilities = message
            if not self._ready.done():
                self._ready.set_result(message)
        elif isinstance(message, Challenge):
            challenge, self._challenge = self._challenge, None
            if challenge is None:
                self._fail(ErrorCode.PROTOCOL, "sent AUTH without being asked for it")
            elif not challenge.done():
                challenge.set_result(message)
        else:
            if message.code != NoticeCode.WINDOW_FULL:
                self._last_notice = message
            self._listener.notice(message)

    def _response(self, response: Response) -> None:
        command = self._pending.pop(response.seq, None)
        if command is not None:
            command.answered(response)
        elif response.seq in self._expired:
            self._expired.remove(response.seq)
        else:
            self._fail(ErrorCode.PROTOCOL, f"answered a command that was never sent (seq {response.seq})")
        self._update_flow()

    def _update_flow(self) -> None:
        if self._flow is not None:
            self._flow.update()

    def _expect_capabilities(self) -> None:
        """`ready` then waits for the next capabilities; the latest remain valid until those come."""
        self._ready = self._loop.create_future()
        # Nobody may be waiting when the connection ends.
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    def _fail(self, code: ErrorCode, what: str, cause: Optional[BaseException] = None) -> None:
        self.close(self._error(code, what, cause))

    def _error(self, code: ErrorCode, what: str, cause: Optional[BaseException] = None) -> ConnectionError:
        error = ConnectionError(code, f"{self.peer}: the server {what}")
        error.__cause__ = cause
        return error


def _reject(future: asyncio.Future[Any], error: CinnabarError) -> None:
    if not future.done():
        future.set_exception(error)
