"""What an expression of PromQL comes to over what a server remembers [MON 9.19], read answer by answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Awaitable, Callable, Dict, List, Optional

from ._constants import Status
from ._history import UNREADABLE, LossRange, loss_of
from ._sample import Sample
from ._times import Time, microseconds
from ._values import Arguments, ArgumentValue, Array, Value, numbers_of, records_of, text_of, texts_of
from .errors import ExpressionError, StatusError

_METRIC = "producer.history.query"


@dataclass(frozen=True)
class ExpressionSeries:
    """Labels and values of a series of a result."""

    #: The name of the metric; empty if the expression takes it away, as `rate` does.
    name: str
    labels: Dict[str, str]
    #: Microseconds since 1970, ascending.
    times: List[int]
    #: As many as `times`.
    values: List[float]

    def _join(self, piece: ExpressionSeries) -> None:
        self.times.extend(piece.times)
        self.values.extend(piece.values)


@dataclass(frozen=True)
class ExpressionResult:
    """What an expression comes to."""

    #: "vector", "matrix", "scalar" or "string".
    type: str
    #: A scalar is one series without labels; a string has none.
    series: List[ExpressionSeries]
    #: A string.
    text: str
    #: Samples that were read for it.
    samples: int
    #: How long it was evaluated, in microseconds.
    took: int
    warnings: List[str]
    infos: List[str]


async def read_expression(
    query: Callable[[str, Arguments], Awaitable[Sample]],
    arguments: Arguments,
    on_loss: Optional[Callable[[LossRange], None]] = None,
) -> ExpressionResult:
    """`query` asks for a metric with arguments."""
    summary: Dict[str, Value] = {}
    series: List[ExpressionSeries] = []
    following: Optional[Arguments] = arguments
    while following is not None:
        records = records_of((await query(_METRIC, following)).value)
        if records is None:
            raise StatusError("QUERY", Status.UNSUPPORTED, UNREADABLE)
        following = None
        for record in records:
            fields = {field.name: field.value for field in record}
            if "more" in fields:
                following = {"after": text_of(record, "after")}
            elif "error" in fields:
                raise _error(fields)
            elif "from" in fields:
                if on_loss is not None:
                    on_loss(loss_of(record))
            elif "times" in fields:
                _add(series, fields)
            else:
                summary = fields
    return ExpressionResult(
        type=_plain(summary, "type"),
        series=series,
        text=_plain(summary, "text"),
        samples=int(_plain(summary, "samples")),
        took=int(_plain(summary, "took")),
        warnings=_lines(summary.get("warnings")),
        infos=_lines(summary.get("infos")),
    )


def expression_arguments(
    expr: str,
    at: Optional[Time],
    since: Optional[Time],
    until: Optional[Time],
    step: Optional[int],
    limit: Optional[int],
    with_losses: bool = False,
) -> Arguments:
    """Raises `ValueError` for a time that is none."""
    arguments: Dict[str, ArgumentValue] = {"expr": expr}
    for argument, name, time in (("at", "at", at), ("from", "since", since), ("to", "until", until)):
        if time is not None:
            arguments[argument] = microseconds(time, name)
    if step is not None:
        if step < 1000:
            raise ValueError(f"`step`: {step} is less than a millisecond")
        arguments["step_ms"] = step // 1000
    if limit is not None:
        arguments["limit"] = limit
    if with_losses:
        arguments["with_losses"] = True
    return arguments


def _add(series: List[ExpressionSeries], fields: Dict[str, Value]) -> None:
    """A long series comes in several records."""
    piece = ExpressionSeries(
        name=_plain(fields, "name"),
        labels=texts_of(fields.get("labels")),
        times=[int(number) for number in numbers_of(fields.get("times"))],
        values=[float(number) for number in numbers_of(fields.get("values"))],
    )
    if series and (series[-1].name, series[-1].labels) == (piece.name, piece.labels):
        series[-1]._join(piece)
    else:
        series.append(piece)


def _error(fields: Dict[str, Value]) -> ExpressionError:
    position = None
    if "error_from" in fields and "error_to" in fields:
        position = int(_plain(fields, "error_from")), int(_plain(fields, "error_to"))
    return ExpressionError(_plain(fields, "error_type"), _plain(fields, "error"), position)


def _plain(fields: Dict[str, Value], name: str) -> str:
    return str(fields[name].plain) if name in fields else ""


def _lines(value: Optional[Value]) -> List[str]:
    items = value.value.items if value is not None and isinstance(value.value, Array) else ()
    return [str(item.plain) for item in items]
