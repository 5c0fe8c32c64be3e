"""A value as it reaches the program, with its labels and its place in the history of the server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Tuple, Union

from ._constants import BasicType
from ._values import Field, Plain, Value, records_of

#: The labels with a place of their own in the REC of a series, in their order [MON 9 Patterns].
_LABELS = (
    "name",
    "producer",
    "node",
    "host",
    "cpu",
    "mount",
    "device",
    "interface",
    "agent",
    "source",
    "index",
    "broker",
    "object",
)
_PLACES = {name: place for place, name in enumerate(_LABELS)}

#: The families whose series have any labels [MON 9.12].
_OPEN_FAMILIES = ("otlp.", "prometheus.", "statsd.", "upstream.")


@dataclass(frozen=True)
class Place:
    """A place in the history of a server: what `after` of `connect` takes. In another generation it means nothing."""

    #: Names the history; empty if the server does not name it.
    generation: str
    #: The highest transaction id that was handled.
    transaction: int


@dataclass(frozen=True)
class SampleOrigin:
    """What samples refer to: a channel, in one generation of its ids."""

    generation: str = ""
    commit: Optional[Callable[[int], None]] = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> Tuple[type, Tuple[str]]:
        """What is pickled commits nothing where it is read."""
        return SampleOrigin, (self.generation,)

    def __deepcopy__(self, _: object) -> SampleOrigin:
        return self


_NOWHERE = SampleOrigin()


@dataclass(frozen=True)
class Sample:
    """A value as its handler or the loop receives it, or as the answer to a command."""

    #: The metric as it was followed or queried, perhaps a pattern. Empty if this program does not follow the metric.
    name: str
    #: The id of the metric on its channel.
    id: int
    #: What `commit` takes; 0 for a value that the server does not keep.
    transaction: int
    #: Microseconds since 1970.
    time: int
    #: The value with its type, as it came: with labels, a REC of these and of `value`. VOID if there is no measurement.
    value: Value
    _origin: SampleOrigin = field(default=_NOWHERE, repr=False)

    @property
    def metric(self) -> str:
        """The name of the metric, also where a pattern was followed."""
        return self._all_labels.get("name", self.name)

    @property
    def labels(self) -> Dict[str, str]:
        """The labels that the name and the arguments left open, such as `host`; they tell the series of a metric apart."""
        return {name: text for name, text in self._all_labels.items() if name != "name"}

    @property
    def plain(self) -> Plain:
        """What was measured, without labels, as Python has it."""
        return self._measured.plain

    @property
    def number(self) -> Union[int, float, None]:
        """What was measured, if it is a number."""
        plain = self.plain
        return plain if isinstance(plain, (int, float)) and not isinstance(plain, bool) else None

    @property
    def text(self) -> Optional[str]:
        """What was measured, if it is a text."""
        plain = self.plain
        return plain if isinstance(plain, str) else None

    @property
    def elements(self) -> List[Sample]:
        """The values of a list one by one, such as those of the answer to a pattern, each with its own time.

        Of anything else it is the value itself.
        """
        records = records_of(self.value)
        if records is None:
            return [self]
        samples = [replace(self, value=Value(BasicType.REC, record)) for record in (records[:-1] if self.is_cut else records)]
        return [replace(sample, time=sample._own_time) for sample in samples]

    @property
    def is_cut(self) -> bool:
        """Whether the list was longer than a message may be: the rest is missing."""
        records = records_of(self.value) or [()]
        return any(one.name == "more" for one in records[-1][:1])

    @property
    def place(self) -> Place:
        """Where it is in the history of the server."""
        return Place(self._origin.generation, self.transaction)

    def commit(self) -> None:
        """Commits this value, without a wait.

        The COMMIT is sent while the program goes on, in one with those of other values where that is possible, and again on the
        next connection if this one is lost before it is stored. `Consumer.close` waits for it. Does nothing for a value that the
        server does not keep, is committed already, or belongs to a channel that was left.
        """
        if self.transaction != 0 and self._origin.commit is not None:
            self._origin.commit(self.transaction)

    @property
    def _all_labels(self) -> Dict[str, str]:
        labelled = _labelled(self.value, self.name)
        return {} if labelled is None else {one.name: str(one.value.plain) for one in labelled.labels}

    @property
    def _measured(self) -> Value:
        labelled = _labelled(self.value, self.name)
        return self.value if labelled is None else labelled.measured

    @property
    def _own_time(self) -> int:
        labelled = _labelled(self.value, self.name)
        return self.time if labelled is None or labelled.time is None else labelled.time


@dataclass(frozen=True)
class _Labelled:
    labels: Tuple[Field, ...]
    time: Optional[int]
    measured: Value


def _labelled(value: Value, asked: str) -> Optional[_Labelled]:
    """The parts of a REC that stands for a series: its labels, in an answer its own time, and last `value`. Else None."""
    fields = value.value
    if not isinstance(fields, tuple) or len(fields) == 0 or fields[-1].name != "value":
        return None
    labels, time = fields[:-1], None
    if labels and labels[-1].name == "time" and labels[-1].value.type is BasicType.UINT64:
        time = int(str(labels[-1].value.value))
        labels = labels[:-1]
    return _Labelled(labels, time, fields[-1].value) if labels and _are_labels(labels, asked) else None


def _are_labels(fields: Tuple[Field, ...], asked: str) -> bool:
    """Whether the fields are texts in the order of labels: other records may end with `value`, too.

    Labels of any name come after one with a place of its own, or where `asked` is of a family whose labels are open.
    """
    names = [field.name for field in fields]
    is_open = names[0] in _PLACES or asked.startswith(_OPEN_FAMILIES)
    if not all(field.value.type is BasicType.STRING and (is_open or field.name in _PLACES) for field in fields):
        return False
    places = [(_PLACES.get(name, len(_PLACES)), b"" if name in _PLACES else name.encode()) for name in names]
    return all(before < after for before, after in zip(places, places[1:]))
