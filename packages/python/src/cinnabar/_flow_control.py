"""Decides when a connection reads, and notices a dead server.

Reading pauses while the program is slow, but never while a response is due: a program that waits for one before it takes
the next value would wait for ever.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import Callable, Optional

#: Seconds. A server may be silent for so long, unless the connection is told another time: half of it until it is probed, half
#: to answer [MON 15].
_SILENCE = 30.0
#: Seconds. The end of that time, in which nothing is decided: the timers of a program that was busy may run before the probe is
#: sent, or before it reads what has come meanwhile.
_LAST_LOOK = 0.1
#: Seconds. Timers may run a little early.
_TOLERANCE = 0.001
#: Seconds. A slow program still reads a little at this interval: the server closes a connection that takes nothing for 30 s
#: while data waits for it [MON 15].
_SLOW_READ = 10.0
#: What the server hands to a connection at once [MON 8.5].
_SLOW_READ_BYTES = 256 << 10


class _Hearing(Enum):
    HEARD = auto()
    PROBED = auto()
    #: The answer should have come, and is looked for once more.
    DUE = auto()


class FlowControl:
    def __init__(
        self,
        pause: Callable[[], None],
        resume: Callable[[], None],
        is_response_due: Callable[[], bool],
        probe: Callable[[], None],
        dead: Callable[[float], None],
    ) -> None:
        """`probe` sends something that the server has to answer. `dead` is called if it was silent for so many seconds."""
        self._loop = asyncio.get_running_loop()
        self._pause = pause
        self._resume = resume
        self._is_response_due = is_response_due
        self._probe = probe
        self._dead = dead
        self._is_held = False
        self._is_paused = False
        self._is_over = False
        self._allowed = _SILENCE
        self._heard = 0.0
        self._hearing = _Hearing.HEARD
        #: How much a slow program may still read.
        self._slow_bytes = 0
        self._silence: Optional[asyncio.TimerHandle] = None
        self._slow: Optional[asyncio.TimerHandle] = None
        self._watch()

    def hold(self, is_held: bool, is_bounded: bool) -> None:
        """Whether reading may pause. `is_bounded`: a window bounds what can come, so that a little is read now and then."""
        self._is_held = is_held
        self._slow_bytes = 0
        _cancel(self._slow)
        if is_held and is_bounded:
            self._slow = self._loop.call_later(_SLOW_READ, self._read_a_little)
        self.update()

    def allow_silence(self, seconds: float) -> None:
        """How long the server may be silent from now on."""
        self._allowed = seconds
        if not self._is_over and not self._is_paused:
            self._watch()

    def received(self, count: int) -> None:
        self._hear()
        if self._slow_bytes > 0:
            self._slow_bytes = max(0, self._slow_bytes - count)
            self.update()

    def update(self) -> None:
        """To be called when `is_response_due` has changed."""
        is_paused = self._is_held and self._slow_bytes == 0 and not self._is_response_due()
        if self._is_over or self._is_paused == is_paused:
            return
        self._is_paused = is_paused
        if is_paused:
            # Silence that we cause ourselves proves nothing.
            _cancel(self._silence)
            self._pause()
        else:
            self._watch()
            self._resume()

    def end(self) -> None:
        self._is_over = True
        _cancel(self._silence)
        _cancel(self._slow)

    def _read_a_little(self) -> None:
        self._slow = self._loop.call_later(_SLOW_READ, self._read_a_little)
        self._slow_bytes = _SLOW_READ_BYTES
        self.update()

    def _hear(self) -> None:
        self._heard = self._loop.time()
        self._hearing = _Hearing.HEARD

    def _watch(self) -> None:
        _cancel(self._silence)
        self._hear()
        self._check_in(self._allowed / 2)

    def _check_in(self, delay: float) -> None:
        self._silence = self._loop.call_later(delay, self._check)

    def _check(self) -> None:
        half = self._allowed / 2
        if self._hearing is _Hearing.DUE:
            self._dead(self._allowed)
        elif self._hearing is _Hearing.PROBED:
            self._hearing = _Hearing.DUE
            self._check_in(_LAST_LOOK)
        else:
            silent = self._loop.time() - self._heard
            if silent < half - _TOLERANCE:
                self._check_in(half - silent)
                return
            self._hearing = _Hearing.PROBED
            self._check_in(half - _LAST_LOOK)
            self._probe()


def _cancel(timer: Optional[asyncio.TimerHandle]) -> None:
    if timer is not None:
        timer.cancel()
