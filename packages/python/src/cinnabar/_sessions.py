"""The sessions of a consumer, one after the other: each with the first of several addresses that answers."""

from __future__ import annotations

import asyncio
import random
from typing import List, Optional, Sequence

from ._connection import ConnectionListener
from ._credentials import Credentials, Secret, TokenCredentials
from ._session import DEADLINE, Address, Security, Session, open_session
from .errors import CinnabarError, ConnectionError, ErrorCode, is_not_up, is_transient

#: Seconds. The pauses between attempts double from the first to the longest.
_FIRST = 0.1
_LONGEST = 10.0
#: Seconds. A connection that lasted for so long was a good one: the next pause is the first again.
STEADY = 5.0
#: Seconds. How long a server with several addresses may be silent: another one may answer, and the nodes of a cluster notice a
#: silent leader as soon.
_SILENCE_OF_SEVERAL = 3.0


class Backoff:
    """The pauses between attempts: at random between half of an interval and all of it."""

    def __init__(self) -> None:
        self._pauses = 0

    def next(self) -> float:
        interval = min(_FIRST * 2.0 ** min(self._pauses, 16), _LONGEST)
        self._pauses += 1
        return interval * (1 - random.random() / 2)

    def reset(self) -> None:
        self._pauses = 0


class Sessions:
    def __init__(
        self,
        addresses: Sequence[Address],
        credentials: Credentials,
        security: Security,
        deadline: float,
        silence: Optional[float] = None,
    ) -> None:
        self._addresses = addresses
        self._credentials = credentials
        self._security = security
        self._deadline = deadline
        self._silence = _SILENCE_OF_SEVERAL if silence is None and len(addresses) > 1 else silence
        #: The index of the address that was used last, or of the next one if that went silent.
        self._current = 0
        #: The token that was used last, and why it may not be used again.
        self._token: Optional[Secret] = None
        self._withdrawn: Optional[ConnectionError] = None

    @property
    def url(self) -> str:
        return ", ".join(address.url for address in self._addresses)

    @property
    def has_several_addresses(self) -> bool:
        return len(self._addresses) > 1

    async def next(self, listener: ConnectionListener) -> Session:
        """Raises `ConnectionError`, and then leaves nothing open."""
        errors: List[CinnabarError] = []
        for offset in range(len(self._addresses)):
            index = (self._current + offset) % len(self._addresses)
            try:
                session = await self._open(self._addresses[index], listener)
            except CinnabarError as error:
                if not is_transient(error):
                    raise
                errors.append(error)
            else:
                self._current = index
                return session
        raise _all_failed(errors)

    def may_continue(self, reason: ConnectionError) -> bool:
        """Whether another session may follow one that has ended for this reason.

        Withdrawn credentials are not tried again [MON 3.5], but a function may provide a new token. An address that went silent
        is tried last: where a machine hangs, its kernel still accepts connections, and each would take the time of an attempt.
        """
        if reason.code is ErrorCode.SILENT:
            self._current = (self._current + 1) % len(self._addresses)
        is_renewed = isinstance(self._credentials, TokenCredentials) and self._credentials.is_renewed
        if reason.code is not ErrorCode.WITHDRAWN or not is_renewed:
            return is_transient(reason)
        self._withdrawn = reason
        return True

    async def _open(self, address: Address, listener: ConnectionListener) -> Session:
        # Before connecting, because the server gives a login only ten seconds.
        proof = await self._proof()
        return await open_session(
            address, self._credentials, proof, self._security, self._deadline, self._silence, listener
        )

    async def _proof(self) -> Optional[Secret]:
        if not isinstance(self._credentials, TokenCredentials):
            return None
        try:
            token = await asyncio.wait_for(self._credentials.token(), DEADLINE)
        except asyncio.TimeoutError:
            late = f"{self.url}: there was no token to log in with after {DEADLINE:g} s"
            raise ConnectionError(ErrorCode.TIMEOUT, late) from None
        is_same = self._token is not None and token.reveal() == self._token.reveal()
        if self._withdrawn is not None and is_same:
            raise self._withdrawn
        self._withdrawn = None
        self._token = token
        return token


def _all_failed(errors: Sequence[CinnabarError]) -> CinnabarError:
    """One error for those of all addresses, with the code of a mistake if there is one."""
    cause = next((error for error in errors if not is_not_up(error)), errors[-1])
    if len(errors) == 1 or not isinstance(cause, ConnectionError):
        return cause
    failed = ConnectionError(cause.code, "; ".join(str(error) for error in errors))
    failed.__cause__ = cause
    return failed
