"""The metrics that a consumer follows, by the ids that they have on its channel at present."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Awaitable, Callable, Dict, List, Mapping, Optional

from . import _commands
from ._awaited import SendCommand
from ._constants import CURRENT_CHANNEL, Command
from ._sample import Sample
from ._values import Arguments, Plain, Value, records_of
from .errors import StatusError

#: Gets the values of one metric. If it gives an awaitable, the next value waits for that.
Handler = Callable[[Sample], object]

#: The number of former ids that are remembered.
_MAX_FORMER = 1024


class Followed:
    """A metric that is followed; `Consumer.follow` makes it."""

    def __init__(
        self, metric: str, args: Arguments, handler: Optional[Handler], stop: Callable[[Followed], Awaitable[None]]
    ) -> None:
        self.metric = metric
        self.args = args
        #: On the channel. It changes if the channel has to be replaced.
        self.id = 0
        self._handler = handler
        self._stop = stop

    async def stop(self) -> None:
        """Ends the subscription. Values that still wait on the channel are dropped."""
        await self._stop(self)

    def __repr__(self) -> str:
        return f"Followed(metric={self.metric!r}, id={self.id})"


@dataclass(frozen=True)
class BoundMetric:
    """A metric that is bound to a channel."""

    id: int
    metric: str
    #: As the server has taken them.
    args: Mapping[str, Plain]
    #: `subscribe`, or `buffer` if the values wait for `get`.
    mode: str


def _ignore(_: Sample) -> None:
    """Takes the values of a metric that is not followed any more."""


class Subscriptions:
    def __init__(self) -> None:
        self._by_id: Dict[int, Followed] = {}
        #: Handlers by the ids that their metrics had before: values with those may still wait to be handled.
        self._former: Dict[int, Optional[Handler]] = {}
        #: The other metrics that are bound to the channel, by id.
        self._found: Dict[int, BoundMetric] = {}

    @property
    def is_empty(self) -> bool:
        return not self._by_id

    @property
    def unfollowed(self) -> List[BoundMetric]:
        return list(self._found.values())

    def handler_of(self, id: int) -> Optional[Handler]:
        followed = self._by_id.get(id)
        return self._former.get(id) if followed is None else followed._handler

    def name_of(self, id: int) -> str:
        followed, found = self._by_id.get(id), self._found.get(id)
        return followed.metric if followed else found.metric if found else ""

    def is_followed(self, followed: Followed) -> bool:
        return self._by_id.get(followed.id) is followed

    def adopt(self, followed: Followed) -> Optional[BoundMetric]:
        """Takes over the binding that the channel already has with this name and these arguments; None if it has none."""
        for bound in self._found.values():
            if bound.metric == followed.metric and _are_equal(bound.args, followed.args):
                self._set(bound.id, followed)
                return bound
        return None

    async def bind(self, send: SendCommand, followed: Followed) -> None:
        """Sends COLLECT and SUBSCRIBE. Nothing is followed once this is cancelled."""
        is_given_up = False

        def collected(id: int) -> None:
            if not is_given_up:
                self._set(id, followed)

        try:
            id = await send(Command.COLLECT, _commands.named(followed.metric, followed.args), collected)
            await send(Command.SUBSCRIBE, _commands.binding(id, CURRENT_CHANNEL), lambda _: None)
        except asyncio.CancelledError:
            is_given_up = True
            raise

    def give_back(self, followed: Followed, bound: BoundMetric) -> None:
        """What was taken over is nobody's again, under the id that it has now."""
        # Another channel may be current by now.
        is_ours = self.is_followed(followed)
        self.delete(followed)
        if is_ours:
            self._found[followed.id] = replace(bound, id=followed.id)

    def delete(self, followed: Followed) -> None:
        if self.is_followed(followed):
            del self._by_id[followed.id]

    def stopped(self, followed: Followed) -> None:
        """Ends a subscription. Those of its values that have already arrived are dropped and count as handled."""
        self.delete(followed)
        self._remember(followed.id, _ignore)

    def forget(self, id: int) -> None:
        """The channel does not bind this id any more."""
        self._found.pop(id, None)

    def reconcile(self, bound: Optional[Mapping[int, BoundMetric]]) -> List[Followed]:
        """Takes note of what a channel binds, if that is known. Returns the followed metrics that are missing there."""
        if bound is None:
            return []
        self._found = {id: metric for id, metric in bound.items() if id not in self._by_id}
        return [followed for id, followed in self._by_id.items() if id not in bound]

    def clear(self) -> None:
        self._by_id.clear()
        self._former.clear()
        self._found.clear()

    def _set(self, id: int, followed: Followed) -> None:
        if self.is_followed(followed):
            del self._by_id[followed.id]
            self._remember(followed.id, followed._handler)
        self._found.pop(id, None)
        followed.id = id
        self._by_id[id] = followed

    def _remember(self, id: int, handler: Optional[Handler]) -> None:
        self._former[id] = handler
        while len(self._former) > _MAX_FORMER:
            del self._former[next(iter(self._former))]


def _are_equal(bound: Mapping[str, Plain], wanted: Arguments) -> bool:
    """The types differ: the server has converted what it was given to the types that the metric declares."""
    return bound.keys() == wanted.keys() and all(_same(bound[name], wanted[name]) for name in wanted)


def _same(one: Plain, other: Plain) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    return str(one) == str(other)


async def bindings_of(
    channel: int, query: Callable[[str, Arguments], Awaitable[Value]]
) -> Optional[Dict[int, BoundMetric]]:
    """What a channel binds, by id; None if the server does not report it."""
    bound: Dict[int, BoundMetric] = {}
    after = 0
    try:
        while True:
            args: Dict[str, int | str] = {"channel": str(channel)}
            if after > 0:
                args["after"] = after
            records = records_of(await query("producer.bindings", args)) or []
            is_cut = False
            for record in records:
                fields = {field.name: field.value.plain for field in record}
                if "metric" not in fields:
                    is_cut = fields.get("more") is True
                    continue
                metric = _to_bound_metric(fields)
                bound[metric.id] = metric
                after = metric.id
            if not is_cut or len(records) == 1:
                return bound
    except StatusError:
        return None


def _to_bound_metric(fields: Mapping[str, Plain]) -> BoundMetric:
    args = fields.get("arguments")
    return BoundMetric(
        id=int(str(fields["metric"])),
        metric=str(fields.get("name", "")),
        args=args if isinstance(args, dict) else {},
        mode=str(fields.get("mode", "")),
    )
