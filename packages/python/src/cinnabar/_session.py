"""A session is a connection that is logged in and has its layers, made within one deadline.

The protection that was requested is provided, or there is no session: nothing falls back to less.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from typing import Optional, Sequence
from urllib.parse import urlsplit

from . import _scram, _xdr
from ._connection import Admitted, Connection, ConnectionListener
from ._constants import DEFAULT_PORT
from ._credentials import CertificateCredentials, Credentials, PasswordCredentials, Secret
from ._messages import Challenge
from .errors import ConnectionError, ErrorCode, StatusError

#: Seconds for connecting and logging in, and before that for a token.
DEADLINE = 10.0
#: Seconds until an unused connection is noticed as dead by the system [MON 15].
_KEEP_ALIVE = 15


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    url: str
    host: str
    port: int
    is_tls: bool


def parse_url(url: str) -> Address:
    """`tcp://host:port` or `tls://host:port`. Raises `ConnectionError` BAD_URL, which does not repeat what may be a secret."""
    if "@" in url:
        raise ConnectionError(ErrorCode.BAD_URL, "the URL contains a user or password: pass them as arguments instead")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        host, port = None, None
    if not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConnectionError(ErrorCode.BAD_URL, f'"{url}" is not a URL such as tcp://127.0.0.1:7650')
    if parts.scheme not in ("tcp", "tls"):
        raise ConnectionError(ErrorCode.BAD_URL, f"cannot connect to {parts.scheme}:// here: use tcp:// or tls://")
    return Address(url, host, DEFAULT_PORT if port is None else port, parts.scheme == "tls")


@dataclass(frozen=True)
class Security:
    """The protection that a program requests."""

    context: Optional[ssl.SSLContext]
    server_hostname: Optional[str]
    wrap: Sequence[str]

    def tls(self) -> ssl.SSLContext:
        if self.context is not None:
            return self.context
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


@dataclass(frozen=True)
class Session:
    connection: Connection
    #: The channel that the server has made for this connection.
    channel: int
    #: Whether nobody on the way can read along: the connection is encrypted, or stays on this machine.
    is_confidential: bool


async def open_session(
    address: Address,
    credentials: Credentials,
    proof: Optional[Secret],
    security: Security,
    deadline: float,
    silence: Optional[float],
    listener: ConnectionListener,
) -> Session:
    """`proof`: the token, if it is one. `silence`: seconds that the server may be silent after the login, if not 30.

    Raises `ConnectionError`, and then leaves nothing open.
    """
    connection = Connection(f"{address.url} as {credentials}", deadline, listener)
    opening = _Opening(connection, address, credentials, proof, security)
    try:
        session = await asyncio.wait_for(opening.run(), DEADLINE)
        # Not before: a node of a cluster may hold the connection until another one leads.
        if silence is not None:
            connection.allow_silence(silence)
        return session
    except asyncio.TimeoutError:
        late = ConnectionError(ErrorCode.TIMEOUT, f"{connection.peer}: not connected and logged in after {DEADLINE:g} s")
        connection.close(late)
        raise late from None
    except BaseException:
        connection.close()
        raise


class _Opening:
    """The steps from an address to a session."""

    def __init__(
        self,
        connection: Connection,
        address: Address,
        credentials: Credentials,
        proof: Optional[Secret],
        security: Security,
    ) -> None:
        self._connection = connection
        self._address = address
        self._credentials = credentials
        self._proof = proof
        self._security = security
        self._is_encrypted = False

    async def run(self) -> Session:
        await self._connect()
        if "tls" in self._security.wrap and not self._address.is_tls:
            await self._add_tls()
        channel = await self._log_in()
        if "deflate" in self._security.wrap:
            await self._expect_layer("deflate")
            await self._connection.add_deflate()
        return Session(self._connection, channel, self._is_confidential)

    @property
    def _is_confidential(self) -> bool:
        return self._is_encrypted or self._is_loopback

    @property
    def _is_loopback(self) -> bool:
        peer = self._connection.transport.get_extra_info("peername")
        return peer is not None and _is_loopback(str(peer[0]))

    async def _connect(self) -> None:
        address, connection = self._address, self._connection
        context = self._security.tls() if address.is_tls else None
        hostname = (self._security.server_hostname or address.host) if context else None
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: connection, address.host, address.port, ssl=context, server_hostname=hostname
            )
        except OSError as error:
            raise self._not_reached(error) from error
        _keep_alive(connection.transport)
        self._is_encrypted = context is not None and _is_verified(context)

    async def _add_tls(self) -> None:
        await self._expect_layer("tls")
        context = self._security.tls()
        try:
            await self._connection.add_tls(context, self._security.server_hostname or self._address.host)
        except OSError as error:
            raise self._not_reached(error) from error
        self._is_encrypted = _is_verified(context)

    async def _expect_layer(self, layer: str) -> None:
        offered = (await self._connection.ready()).layer
        if layer not in offered:
            others = f"it offers {', '.join(offered)}" if offered else "it offers none"
            raise self._error(ErrorCode.NO_LAYER, f"the server does not offer the requested layer {layer} ({others})")

    async def _log_in(self) -> int:
        """Logs in [MON 11] and returns the id of the current channel.

        A password is used by SCRAM wherever that is offered, since it shows the password to nobody and makes the server prove
        itself. A password or token is sent in the clear only to this machine or under encryption.
        """
        offered = (await self._connection.ready()).auth
        credentials = self._credentials
        try:
            if isinstance(credentials, PasswordCredentials):
                if _scram.METHOD in offered:
                    return await self._by_scram(credentials)
                if "password" in offered:
                    self._expect_confidential("password")
                    data = _xdr.string(credentials.identity) + _xdr.string(credentials.password.reveal())
                    return await self._directly("password", data)
            elif isinstance(credentials, CertificateCredentials):
                if "certificate" in offered:
                    return await self._directly("certificate", b"")
            elif self._proof is not None:
                self._expect_confidential("token")
                if "token" in offered:
                    return await self._directly("token", _xdr.utf8(self._proof.reveal()))
        except StatusError as error:
            why = f"login refused: {error.detail}" if error.status == "AUTH_FAILED" else str(error)
            raise self._error(ErrorCode.LOGIN_FAILED, why) from error
        except _scram.NotProven as error:
            raise self._error(ErrorCode.SERVER_NOT_PROVEN, str(error)) from error
        except _scram.ScramError as error:
            raise self._error(ErrorCode.LOGIN_FAILED, str(error)) from error
        methods = ", ".join(offered) or "no method"
        raise self._error(ErrorCode.NO_METHOD, f"cannot log in safely: the server offers {methods}")

    async def _by_scram(self, credentials: PasswordCredentials) -> int:
        scram = _scram.ScramClient(credentials.identity, credentials.password)
        challenge = await self._exchange(_scram.METHOD, scram.first())
        # The iterations take time, which others of this loop need.
        final = await asyncio.get_running_loop().run_in_executor(None, scram.final, challenge)
        scram.verify(await self._exchange("", final))
        # Only now, after the server's proof, does its OK admit us.
        return await self._directly("", b"")

    async def _exchange(self, method: str, data: bytes) -> bytes:
        reply = await self._connection.authenticate(method, data, is_last=False)
        if isinstance(reply, Challenge):
            return reply.data
        raise _scram.NotProven("the server admitted us without proving that it knows the password")

    async def _directly(self, method: str, data: bytes) -> int:
        reply = await self._connection.authenticate(method, data, is_last=True)
        if isinstance(reply, Admitted):
            return reply.channel
        raise _scram.ScramError("the server asks for more than this method provides")

    def _expect_confidential(self, what: str) -> None:
        if not self._is_confidential:
            raise self._error(
                ErrorCode.NO_METHOD,
                f"cannot log in safely: the {what} could be read on the way, or by whatever server answers there. Use tls://, "
                'or wrap=["tls"], and have the certificate verified',
            )

    def _not_reached(self, error: OSError) -> ConnectionError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._error(ErrorCode.UNTRUSTED, f"the certificate is not trusted: {error.verify_message}")
        return self._error(ErrorCode.UNREACHABLE, str(error) or type(error).__name__)

    def _error(self, code: ErrorCode, why: str) -> ConnectionError:
        return ConnectionError(code, f"{self._connection.peer}: {why}")


def _is_verified(context: ssl.SSLContext) -> bool:
    return context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _keep_alive(transport: asyncio.Transport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", _KEEP_ALIVE), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 2)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
