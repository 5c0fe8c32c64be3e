"""The mailbox of a consumer: it takes the values of one channel in their order, hands them out one after the other, and
commits each once it was handled. While too many values wait it asks for a pause in reading, so that a slow program makes
the server wait.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from typing import Any, Deque, List, Optional, Protocol, Union

from ._acknowledgements import Acknowledgements, DueCommits
from ._awaited import AwaitedValues
from ._messages import GapMessage, ValueMessage
from ._sample import Sample, SampleOrigin
from ._subscriptions import Subscriptions
from .errors import ConnectionError
from .events import Gap, Restored, gap_of

#: Reading pauses while more values than this wait to be handled, and resumes at half of it.
_MAX_WAITING = 1024

Entry = Union[Sample, Gap, Restored]


class MailboxOwner(Protocol):
    """What a mailbox needs of its consumer."""

    @property
    def generation(self) -> str:
        """Names the history of the transaction ids that arrive now."""

    def emit(self, event: Union[Gap, Restored]) -> None:
        """May raise what a listener raises."""

    def hold(self, is_held: bool) -> None:
        """Reading is to pause, or to resume."""

    def send_commit(self, transaction: int, through: bool) -> asyncio.Future[int]:
        """Sends a COMMIT."""

    def failed(self, error: BaseException) -> None:
        """The server refused a COMMIT, which it never should."""


class Mailbox:
    def __init__(
        self,
        owner: MailboxOwner,
        subscriptions: Subscriptions,
        awaited: AwaitedValues,
        after: int,
        is_explicit: bool,
    ) -> None:
        """`after`: the highest transaction id that an earlier run has handled. `is_explicit`: only the program commits."""
        self._owner = owner
        self._subscriptions = subscriptions
        self._awaited = awaited
        self._is_explicit = is_explicit
        self._entries: Deque[Entry] = deque()
        self.is_held = False
        #: Replaced with each channel, which has ids of its own: work that outlasts a channel recognizes that by it.
        self._acks = Acknowledgements(after, is_explicit)
        #: What the samples of this channel and generation refer to; made for the first one.
        self._origin: Optional[SampleOrigin] = None
        #: The value that the loop has and has not finished.
        self._current: Optional[Sample] = None
        self._reading: Optional[Reading] = None
        self._is_asked = False
        #: The task that reads.
        self._reader: Optional[asyncio.Task[Any]] = None
        self._changed = asyncio.Event()
        self._is_ended = False
        self._error: Optional[BaseException] = None
        #: The COMMITs on their way. Only one group is, so that many values need few commands while the disk is busy.
        self._committing: Optional[asyncio.Future[None]] = None
        self._is_suspended = False

    @property
    def origin(self) -> SampleOrigin:
        if self._origin is None:
            acks = self._acks
            self._origin = SampleOrigin(self._owner.generation, lambda transaction: self._commit(acks, transaction))
        return self._origin

    def receive(self, message: Union[ValueMessage, GapMessage]) -> None:
        """Takes a value or GAP from the connection. Repeats are not handed out again, but committed again if that is due."""
        transaction = message.transaction
        if not self._acks.received(transaction):
            self._flush()
        elif isinstance(message, GapMessage):
            self._push(gap_of(message, self._subscriptions.name_of(message.metric)))
        else:
            taken = self._awaited.take(message)
            if taken == "":
                name = self._subscriptions.name_of(message.metric)
                self._push(Sample(name, message.metric, transaction, message.time, message.value, self.origin))
            # Nobody knows the id of a result that nobody wants, so nobody else could commit it.
            elif transaction != 0 and (taken == "unwanted" or not self._is_explicit):
                self._acks.committed(transaction)
                self._flush()

    def begin_reading(self) -> Reading:
        """Begins a loop over the values without a handler. A value that the loop before has left was not handled."""
        if self._is_asked:
            raise RuntimeError("the values of this consumer are already being read")
        if self._current is not None:
            self._entries.appendleft(self._current)
            self._current = None
        self._reading = Reading(self)
        return self._reading

    async def run(self) -> None:
        """Calls the handlers until the end. Values without a handler are skipped and stay uncommitted."""
        reading = self.begin_reading()
        while await self.next(reading) is not None:
            if self._current is not None:
                if not self._is_explicit:
                    self._acks.skipped(self._current.transaction)
                self._current = None

    async def next(self, reading: Reading) -> Optional[Sample]:
        """The next value without a handler; None at the end. Raises what a handler raises, or what ended it all."""
        if reading is not self._reading:
            raise RuntimeError("another loop has begun over the values of this consumer")
        if self._is_asked:
            raise RuntimeError("the next value was requested before the previous request was answered")
        self._is_asked = True
        self._reader = asyncio.current_task()
        try:
            if self._current is not None:
                self._handled(self._current)
                self._current = None
                self._flush()
            return await self._next()
        finally:
            self._is_asked = False
            self._changed.set()

    def begin_commit(self, transaction: int, through: bool) -> bool:
        """The consumer is about to send this COMMIT itself, after which the value in the loop counts as handled.

        Returns whether the COMMIT is to cover everything before it, which it may if nothing of that was skipped.
        """
        is_current = self._current is not None and self._current.transaction == transaction
        if is_current:
            self._current = None
        covers = through or (is_current and not self._is_explicit and not self._acks.has_skipped)
        if covers:
            self._acks.committing_through(transaction)
        elif self._is_explicit:
            self._acks.committing(transaction)
        elif is_current:
            self._acks.handled(transaction)
        return covers

    def reconnected(self) -> None:
        """A new connection has taken up the channel."""
        self._acks.reconnected()

    def suspend_commits(self, is_suspended: bool) -> None:
        """Between a SET_CHANNEL and its response nothing can be committed: the COMMIT would be for another channel."""
        self._is_suspended = is_suspended
        if not is_suspended:
            self._flush()

    def switch_channel(self) -> None:
        """Another channel is current. What was not handled stays on the old one."""
        self._entries.clear()
        self._hold(False)
        self._current = None
        self._acks = Acknowledgements(0, self._is_explicit)
        self._origin = None
        self._committing = None
        self._is_suspended = False

    def begin_generation(self, before: str, generation: str) -> None:
        """Nothing that was handled before is known by its id any more. What was received and not handled is sent again."""
        self.switch_channel()
        self._push(Restored(before, generation))

    async def committed(self) -> None:
        """Waits until everything handled is committed, or the connection has ended."""
        self._flush()
        while self._committing is not None and not self._committing.done():
            await asyncio.wait([self._committing])

    def end(self, error: Optional[BaseException]) -> None:
        """The reader ends after the value that it handles now."""
        if not self._is_ended:
            self._is_ended = True
            self._error = error
        self._changed.set()

    async def idle(self, patience: float) -> None:
        """Waits until no other task handles a value, for so many seconds at most. The task that calls it does not handle one."""
        caller = asyncio.current_task()

        async def until_idle() -> None:
            while self._is_read_by_other_than(caller):
                self._changed.clear()
                await self._changed.wait()

        try:
            # Before Python 3.12 this is another task.
            await asyncio.wait_for(until_idle(), patience)
        except asyncio.TimeoutError:
            pass

    def _is_read_by_other_than(self, task: Optional[asyncio.Task[Any]]) -> bool:
        if self._reader is None or self._reader is task or self._reader.done():
            return False
        return self._is_asked or self._current is not None

    async def _next(self) -> Optional[Sample]:
        while True:
            entry = self._take()
            if entry is None:
                if self._is_ended:
                    if self._error is not None:
                        raise self._error
                    return None
                self._flush()
                self._changed.clear()
                await self._changed.wait()
            elif isinstance(entry, Sample) and self._subscriptions.handler_of(entry.id) is None:
                self._current = entry
                return entry
            else:
                acks = self._acks
                try:
                    handling = self._handle(entry)
                    if inspect.isawaitable(handling):
                        await handling
                except BaseException:
                    # It is the first for the next reader.
                    if acks is self._acks:
                        self._entries.appendleft(entry)
                    raise
                if acks is self._acks:
                    self._handled(entry)
                if inspect.isawaitable(handling):
                    self._flush()

    def _handle(self, entry: Entry) -> object:
        if not isinstance(entry, Sample):
            self._owner.emit(entry)
            return None
        handler = self._subscriptions.handler_of(entry.id)
        return None if handler is None else handler(entry)

    def _handled(self, entry: Entry) -> None:
        if not self._is_explicit and not isinstance(entry, Restored):
            self._acks.handled(entry.transaction)

    def _commit(self, acks: Acknowledgements, transaction: int) -> None:
        """Commits a value of the channel that `acks` is about, with the next group."""
        if acks is not self._acks:
            return
        if self._current is not None and self._current.transaction == transaction:
            if not self._is_explicit:
                acks.handled(transaction)
            self._current = None
        acks.committed(transaction)
        self._flush()

    def _push(self, entry: Entry) -> None:
        self._entries.append(entry)
        if len(self._entries) > _MAX_WAITING:
            self._hold(True)
        self._changed.set()

    def _take(self) -> Optional[Entry]:
        """After the final end of the connection only values that the server keeps nowhere can still be handled."""
        if self._is_ended and self._error is None:
            return None
        while self._entries:
            entry = self._entries.popleft()
            if len(self._entries) <= _MAX_WAITING // 2:
                self._hold(False)
            is_kept = not isinstance(entry, Restored) and entry.transaction != 0
            if not (self._is_ended and is_kept):
                return entry
        return None

    def _hold(self, is_held: bool) -> None:
        if self.is_held != is_held:
            self.is_held = is_held
            self._owner.hold(is_held)

    def _flush(self) -> None:
        """Sends the COMMITs that are due, unless a group is on its way: then they follow it."""
        if self._committing is not None or self._is_suspended:
            return
        due = self._acks.take_due()
        if due is None:
            return
        sent = [self._owner.send_commit(transaction, False) for transaction in due.singles]
        if due.through > 0:
            sent.append(self._owner.send_commit(due.through, True))
        self._committing = asyncio.ensure_future(self._settle(sent, due, self._acks))

    async def _settle(self, sent: List[asyncio.Future[int]], due: DueCommits, acks: Acknowledgements) -> None:
        """A lost connection needs no care here: what was not stored is sent again, and due again."""
        results = await asyncio.gather(*sent, return_exceptions=True)
        if acks is not self._acks:
            return
        self._committing = None
        errors = [result for result in results if isinstance(result, BaseException)]
        refusals = [error for error in errors if not isinstance(error, ConnectionError)]
        if refusals:
            self._owner.failed(refusals[0])
        elif not errors:
            acks.stored(due)
            self._flush()


class Reading:
    """A loop over the values without a handler."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def __aiter__(self) -> Reading:
        return self

    async def __anext__(self) -> Sample:
        sample = await self._mailbox.next(self)
        if sample is None:
            raise StopAsyncIteration
        return sample
