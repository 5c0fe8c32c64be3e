"""Times as they are given to the library."""

from __future__ import annotations

import datetime
from typing import Union

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

#: Microseconds since 1970, or a datetime with a time zone.
Time = Union[int, datetime.datetime]


def microseconds(time: Time, name: str) -> int:
    """Microseconds since 1970. Raises `ValueError`, with the name of the argument."""
    if isinstance(time, datetime.datetime):
        if time.tzinfo is None:
            raise ValueError(f"`{name}`: {time} has no time zone")
        time = (time - _EPOCH) // datetime.timedelta(microseconds=1)
    if time < 0:
        raise ValueError(f"`{name}`: {time} is before 1970")
    return time
