"""What a server remembers of metrics [MON 9.16], read page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Tuple

from ._constants import Status
from ._sample import Sample
from ._times import Time, microseconds
from ._values import Arguments, ArgumentValue, Field, Value, numbers_of, records_of, text_of, texts_of
from .errors import StatusError

_METRIC = "producer.history.select"
#: Labels with these names cannot be selected by.
_OWN_ARGUMENTS = ("metric", "from", "to", "step_ms", "with_losses", "with_families", "after")
_WINDOW_COLUMNS = (
    "ends", "min", "max", "sum", "count", "first", "first_times", "last", "last_times", "resets",
)
UNREADABLE = "the server remembers nothing, or cannot read it now; its log says why"


@dataclass(frozen=True)
class LossRange:
    """A range of time in which values are missing: microseconds since 1970, both ends included."""

    #: Empty: of no tenant.
    tenant: str
    #: The name of a metric, or a pattern; empty if it may be any.
    metric: str
    start: int
    end: int
    #: How many values are missing; 0 if that is not known.
    count: int
    #: A few words for people.
    reason: str


@dataclass(frozen=True)
class SeriesWindow:
    """What the samples of a span of time, open on the left, come to. Times are microseconds since 1970."""

    #: How long it is, in microseconds.
    step: int
    end: int
    min: float
    max: float
    sum: float
    #: How many samples.
    count: int
    first: float
    first_time: int
    last: float
    last_time: int
    #: What a counter has lost by starting again: the sum of the values before which the next one was smaller.
    resets: float


@dataclass(frozen=True)
class SeriesFamily:
    """What is known of samples of one name, as Prometheus says it; the samples of a histogram or summary are one family."""

    name: str
    #: ``counter``, ``gauge``, ``histogram``, ``summary`` or ``unknown``.
    type: str
    #: A sentence for people; it may be empty, as the unit may.
    help: str
    unit: str


@dataclass(frozen=True)
class SeriesHistory:
    """A series and what is remembered of it. All times are microseconds since 1970, ascending."""

    #: Empty: the series belongs to no tenant.
    tenant: str
    #: The metric; a record among its values has a series for each of its numbers.
    metric: str
    #: The name of the series in Prometheus.
    name: str
    #: Its labels in Prometheus.
    labels: Dict[str, str]
    times: List[int]
    #: As many as `times`.
    values: List[float]
    #: When the series ended.
    ended: List[int]
    #: What there is in place of samples, if a step was given; they are earlier than all samples.
    windows: List[SeriesWindow]
    #: What is known of its metric, if that was asked for and anything is.
    family: Optional[SeriesFamily] = None

    @property
    def _identity(self) -> Tuple[str, str, str, Dict[str, str]]:
        return self.tenant, self.metric, self.name, self.labels

    def _join(self, piece: SeriesHistory) -> None:
        self.times.extend(piece.times)
        self.values.extend(piece.values)
        self.ended.extend(piece.ended)
        self.windows.extend(piece.windows)


async def read_history(
    query: Callable[[str, Arguments], Awaitable[Sample]],
    arguments: Arguments,
    in_pieces: bool,
    on_loss: Optional[Callable[[LossRange], None]] = None,
) -> AsyncIterator[SeriesHistory]:
    """`query` asks for a metric with arguments."""
    series: Optional[SeriesHistory] = None
    following: Optional[Arguments] = arguments
    whose = {name: text for name, text in arguments.items() if name == "producer"}
    while following is not None:
        records = records_of((await query(_METRIC, following)).value)
        if records is None:
            raise StatusError("QUERY", Status.UNSUPPORTED, UNREADABLE)
        following = None
        for record in records:
            if record and record[0].name == "more":
                following = {**whose, "after": text_of(record, "after")}
                break
            if any(field.name == "from" for field in record):
                if on_loss is not None:
                    on_loss(loss_of(record))
                continue
            piece = _piece(record)
            if series is not None and not in_pieces and series._identity == piece._identity:
                series._join(piece)
            else:
                if series is not None:
                    yield series
                series = piece
    if series is not None:
        yield series


def history_arguments(
    metric: str,
    labels: Optional[Mapping[str, str]],
    since: Optional[Time],
    until: Optional[Time],
    step: Optional[int] = None,
    with_losses: bool = False,
    with_families: bool = False,
) -> Arguments:
    """Raises `ValueError` for a label that nothing can be selected by, and for a time that is none."""
    arguments: Dict[str, ArgumentValue] = dict(labels or {})
    for name in _OWN_ARGUMENTS:
        if name in arguments:
            raise ValueError(f"nothing can be selected by a label with the name `{name}`")
    arguments["metric"] = metric
    if since is not None:
        arguments["from"] = microseconds(since, "since")
    if until is not None:
        arguments["to"] = microseconds(until, "until")
    if step is not None:
        if step < 0:
            raise ValueError(f"`step`: {step} is less than 0")
        arguments["step_ms"] = step // 1000
    if with_losses:
        arguments["with_losses"] = True
    if with_families:
        arguments["with_families"] = True
    return arguments


def _piece(record: Tuple[Field, ...]) -> SeriesHistory:
    fields = {field.name: field.value for field in record}
    return SeriesHistory(
        tenant=text_of(record, "tenant"),
        metric=text_of(record, "metric"),
        name=text_of(record, "name"),
        labels=texts_of(fields.get("labels")),
        times=[int(number) for number in numbers_of(fields.get("times"))],
        values=[float(number) for number in numbers_of(fields.get("values"))],
        ended=[int(number) for number in numbers_of(fields.get("ended"))],
        windows=_windows(fields),
        family=_family(fields),
    )


def _family(fields: Mapping[str, Value]) -> Optional[SeriesFamily]:
    if "family" not in fields:
        return None
    texts = texts_of(fields["family"])
    return SeriesFamily(**{name: texts.get(name, "") for name in ("name", "type", "help", "unit")})


def _windows(fields: Mapping[str, Value]) -> List[SeriesWindow]:
    if "ends" not in fields:
        return []
    step = 1000 * int(str(fields["step_ms"].plain))
    columns = [numbers_of(fields.get(name)) for name in _WINDOW_COLUMNS]
    return [
        SeriesWindow(
            step, int(end), float(least), float(most), float(total), int(count),
            float(first), int(first_time), float(last), int(last_time), float(resets),
        )
        for end, least, most, total, count, first, first_time, last, last_time, resets in zip(*columns)
    ]


def loss_of(record: Tuple[Field, ...]) -> LossRange:
    return LossRange(
        tenant=text_of(record, "tenant"),
        metric=text_of(record, "metric"),
        start=int(text_of(record, "from")),
        end=int(text_of(record, "to")),
        count=int(text_of(record, "lost")),
        reason=text_of(record, "reason"),
    )
