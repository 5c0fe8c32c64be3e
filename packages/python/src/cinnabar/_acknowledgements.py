"""How far a consumer has come on its channel: which transaction ids it has received and handled, and which of them a COMMIT
is due for [MON 5, 8].

Ids ascend in the order of sending, also when they are sent again, so an id that is not higher than every earlier one is a
repeat. `through` covers only what was sent on the present connection: a value that is sent again after its COMMIT was lost
is committed again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Deque, List, Optional, Set

#: The largest number of single COMMITs that are sent before the first is answered.
_MAX_SINGLES = 4096


@dataclass(frozen=True)
class DueCommits:
    #: Ids to commit one by one.
    singles: List[int]
    #: The id to commit together with everything before it; 0 if there is none.
    through: int


class Acknowledgements:
    def __init__(self, after: int = 0, is_explicit: bool = False) -> None:
        """`after`: the highest id that an earlier run has handled. `is_explicit`: only the program commits."""
        self._is_explicit = is_explicit
        #: With `is_explicit`: the ids that came and are not committed, in ascending order. The window of the channel bounds them.
        self._open: Deque[int] = deque()
        #: The highest id ever received.
        self._received = after
        #: Everything up to this id was handled, except for what was skipped.
        self._handled = after
        #: Everything up to this id may be committed by one `through`.
        self._through = after
        #: Ids handled out of order: the results of controls, and what the program has committed before something that came
        #: earlier.
        self._out_of_order: Set[int] = set()
        #: Ids that nobody wanted. Neither they nor anything after them may be committed by `through`.
        self._skipped: Set[int] = set()
        self._singles: List[int] = []
        #: The highest id received on this connection, and the highest that a `through` on it covers.
        self._seen = 0
        self._committed = 0

    @property
    def has_skipped(self) -> bool:
        return len(self._skipped) > 0

    def received(self, transaction: int) -> bool:
        """Whether the id is new. A repeat needs no handling and is committed again if it was handled. 0 is always new."""
        if transaction == 0:
            return True
        self._seen = max(self._seen, transaction)
        if transaction > self._received:
            self._received = transaction
            if self._is_explicit:
                self._open.append(transaction)
            return True
        is_handled = transaction <= self._handled or transaction in self._out_of_order
        if is_handled and transaction > self._through and transaction not in self._skipped:
            self._singles.append(transaction)
        return False

    def handled(self, transaction: int) -> None:
        """To be called in the order of arrival."""
        if transaction <= self._handled:
            return
        self._handled = transaction
        if self._skipped:
            self._singles.append(transaction)
        else:
            self._through = transaction

    def handled_out_of_order(self, transaction: int) -> None:
        """The value was handled before others that arrived earlier."""
        if transaction != 0:
            self._out_of_order.add(transaction)
            self._singles.append(transaction)

    def committed(self, transaction: int) -> None:
        """The program commits this value, whatever becomes of the others.

        If everything before it is committed, too, one `through` covers it, and all that are committed before that is sent.
        """
        is_known = not self._is_explicit and self._handled < transaction <= self._received
        index = self.committing(transaction)
        if index == 0:
            self.handled(transaction)
        elif is_known or index > 0:
            self.handled_out_of_order(transaction)

    def committing(self, transaction: int) -> int:
        """The caller itself sends a COMMIT of this id alone.

        Returns its place among those that are open, mostly the first; -1 if it is not open.
        """
        if not self._open or transaction < self._open[0]:
            return -1
        try:
            index = self._open.index(transaction)
        except ValueError:
            return -1
        del self._open[index]
        return index

    def stored(self, due: DueCommits) -> None:
        """The server has stored these: they do not come again."""
        self._out_of_order.difference_update(due.singles)

    def skipped(self, transaction: int) -> None:
        """The value stays uncommitted: another program that takes up the channel receives it again."""
        if transaction > self._handled:
            self._handled = transaction
            self._skipped.add(transaction)

    def committing_through(self, last: int) -> None:
        """The caller itself sends a COMMIT of everything up to this id. Ids that have not arrived yet are not covered."""
        transaction = min(last, self._received)
        if transaction <= self._through:
            return
        self._handled = max(self._handled, transaction)
        self._through = transaction
        self._committed = min(transaction, self._seen)
        while self._open and self._open[0] <= transaction:
            self._open.popleft()
        self._skipped = {skipped for skipped in self._skipped if skipped > transaction}

    def reconnected(self) -> None:
        """A new connection has taken up the channel."""
        self._seen = 0
        self._committed = 0
        self._singles = []

    def take_due(self) -> Optional[DueCommits]:
        """Takes what is to be committed now; None if that is nothing."""
        through = min(self._through, self._seen)
        is_behind = through > self._committed
        if not is_behind and not self._singles:
            return None
        if is_behind:
            self._committed = through
        singles, self._singles = self._singles[:_MAX_SINGLES], self._singles[_MAX_SINGLES:]
        self._out_of_order = {one for one in self._out_of_order if one > self._through}
        return DueCommits(singles, through if is_behind else 0)
