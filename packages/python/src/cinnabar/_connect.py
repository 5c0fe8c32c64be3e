"""Makes consumers that connect to their server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Generator, Sequence
from typing import Any, Callable, Optional, Union

from ._channel_options import ChannelOptions
from ._consumer import Consumer
from ._credentials import (
    CertificateCredentials,
    Credentials,
    PasswordCredentials,
    Secret,
    TokenCredentials,
    TokenSource,
)
from ._sample import Place
from ._session import Security, parse_url
from ._sessions import Backoff, Sessions
from .errors import CinnabarError, ConnectionError, ErrorCode, is_not_up
from .events import Retrying

#: Seconds.
_MIN_SILENCE = 1.0
_MAX_SILENCE = 86_400.0


class Connecting:
    """What `connect` returns: await it for a `Consumer`, or use it with `async with`, which closes the consumer at the end."""

    def __init__(self, make: Callable[[], Awaitable[Consumer]]) -> None:
        self._make = make
        self._consumer: Optional[Consumer] = None

    def __await__(self) -> Generator[Any, None, Consumer]:
        return self._make().__await__()

    async def __aenter__(self) -> Consumer:
        self._consumer = await self
        return self._consumer

    async def __aexit__(self, *_: object) -> None:
        if self._consumer is not None:
            await self._consumer.close()


def connect(
    url: Union[str, Sequence[str]],
    *,
    identity: Optional[str] = None,
    password: Optional[str] = None,
    token: Optional[TokenSource] = None,
    certificate: bool = False,
    name: Optional[str] = None,
    channel: Optional[int] = None,
    after: Optional[Place] = None,
    durable: bool = True,
    commit: str = "automatic",
    reconnect: bool = True,
    deadline: float = 30.0,
    silence: Optional[float] = None,
    ssl: Optional[ssl.SSLContext] = None,
    server_hostname: Optional[str] = None,
    wrap: Sequence[str] = (),
    wait_for_server: float = 0.0,
    retrying: Optional[Callable[[Retrying], object]] = None,
) -> Connecting:
    """Connects, logs in, and takes up a channel: `async with connect(...) as consumer`, or `consumer = await connect(...)`.

    Args:
        url: `tcp://host:port` or `tls://host:port` (the default port is 7650). Several are several addresses of one server: each
            connection takes the first that answers, beginning with the last one used.
        identity: `user` or `tenant/user`, with `password`.
        token: a text, or a function (which may be a coroutine function) that is called for one before each connection.
        certificate: True to log in with the certificate of `ssl`, whose subject names the user.
        name: the name of the channel to take up. If the user has no channel with this name, it is created.
        channel: the id of the channel to take up. With `name`, the channel that `after` is about.
        after: how far an earlier run has come; nothing up to it is handed out again.
        durable: False: the channel keeps nothing while there is no connection, and ends with it.
        commit: "automatic", or "explicit": only the program commits, by `Sample.commit` or `Consumer.commit`.
        reconnect: False: the end of the connection is the end of the consumer.
        deadline: seconds that a command may wait for its response, or for a connection.
        silence: seconds that the server may be silent until the connection counts as lost: 30, and 3 with several addresses.
            After half of it a NOP asks whether the server is there.
        ssl: for `tls://` and the layer `tls`; `ssl.create_default_context()` if it is not given.
        server_hostname: the name that the server's certificate must be for, if it is not the host of the URL.
        wrap: layers to add to each connection: "tls" before the login, "deflate" after it.
        wait_for_server: seconds to wait for a server that is not up yet. 0 makes one attempt.
        retrying: called before each further attempt while it waits for the server.

    Raises:
        ConnectionError: there is no connection; nothing is left open.
        StatusError: the channel cannot be taken up.
        ValueError: the arguments contradict each other, or one is out of its bounds.
    """
    credentials = _credentials(identity, password, token, certificate)
    options = ChannelOptions(name, channel, after, durable, commit, reconnect)
    if not set(wrap) <= {"tls", "deflate"}:
        raise ValueError("the layers of `wrap` are 'tls' and 'deflate'")
    security = Security(ssl, server_hostname, tuple(wrap))
    urls = [url] if isinstance(url, str) else list(url)
    if not urls:
        raise ValueError("no address to connect to is given")
    if silence is not None and not _MIN_SILENCE <= silence <= _MAX_SILENCE:
        raise ValueError(f"`silence` is a number from {_MIN_SILENCE:g} to {_MAX_SILENCE:g}")

    async def make() -> Consumer:
        addresses = [parse_url(one) for one in urls]
        sessions = Sessions(addresses, credentials, security, deadline, silence)

        async def attempt() -> Consumer:
            consumer = Consumer(sessions, options, deadline)
            await consumer.open()
            return consumer

        if wait_for_server <= 0:
            return await attempt()
        return await _when_up(attempt, sessions.url, wait_for_server, retrying)

    return Connecting(make)


def _credentials(
    identity: Optional[str], password: Optional[str], token: Optional[TokenSource], certificate: bool
) -> Credentials:
    given = [identity is not None or password is not None, token is not None, certificate]
    if given.count(True) != 1 or (identity is None) != (password is None):
        raise ValueError("credentials are `identity` and `password`, or `token`, or `certificate=True`")
    if identity is not None and password is not None:
        return PasswordCredentials(identity, Secret(password))
    return CertificateCredentials() if token is None else TokenCredentials(token)


async def _when_up(
    attempt: Callable[[], Awaitable[Consumer]], peer: str, seconds: float, retrying: Optional[Callable[[Retrying], object]]
) -> Consumer:
    """Repeats the attempt as long as the server may just not be up yet."""
    backoff = Backoff()
    last: Optional[CinnabarError] = None

    async def until_up() -> Consumer:
        nonlocal last
        failed = 0
        while True:
            try:
                return await attempt()
            except CinnabarError as error:
                if not is_not_up(error):
                    raise
                last = error
            failed += 1
            delay = backoff.next()
            if retrying is not None:
                retrying(Retrying(failed, delay, last))
            await asyncio.sleep(delay)

    try:
        return await asyncio.wait_for(until_up(), None if seconds == float("inf") else seconds)
    except asyncio.TimeoutError:
        late = ConnectionError(ErrorCode.TIMEOUT, f"{peer}: not connected and logged in after {seconds:g} s: {last or ''}")
        raise late from last
