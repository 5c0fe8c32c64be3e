"""Which channel a consumer takes up, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ._sample import Place


@dataclass(frozen=True)
class ChannelOptions:
    """Which channel a consumer takes up, and how; see `connect`."""

    name: Optional[str] = None
    channel: Optional[int] = None
    after: Optional[Place] = None
    durable: bool = True
    commit: str = "automatic"
    reconnect: bool = True

    def __post_init__(self) -> None:
        if self.commit not in ("automatic", "explicit"):
            raise ValueError("commit is 'automatic' or 'explicit'")
        if self.name is not None and not self.durable:
            raise ValueError("a channel with a name is durable: leave out `durable`, or `name`")
        if self.name is not None and self.after is not None and self.channel is None:
            raise ValueError("with `name`, `after` needs the `channel` that it is about: the name may have another one by now")
