"""A producer in memory with one channel, and the sessions that lead to it.

Its bytes are written here, with no code of the library.
"""

import asyncio
import struct

from cinnabar._connection import Connection
from cinnabar._session import Session
from cinnabar.errors import ConnectionError, ErrorCode

TIME = 1_700_000_000_000_000
NAMES = "NOP COLLECT STOP SUBSCRIBE BUFFER GET AUTH DEF_CHANNEL SET_CHANNEL DEL_CHANNEL COMMIT EXECUTE QUERY WRAP".split()


def text(string):
    data = string.encode()
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def frame(payload):
    return struct.pack(">I", len(payload)) + payload


def response(seq, status=0, result=0, detail=None):
    return frame(struct.pack(">IIII", 0xFFFFFFFF, seq, status, result) + (b"" if detail is None else text(detail)))


def capabilities(generation="g1", auth=("token",), layer=()):
    texts = [*(("auth", one) for one in auth), *(("layer", one) for one in layer), ("generation", generation)]
    entries = [(name, struct.pack(">I", 7) + text(value)) for name, value in texts]
    listed = b"".join(text(name) + value for name, value in entries)
    return frame(struct.pack(">IIII", 0xFFFFFFFE, 1, 1, len(entries)) + listed)


def value(metric, transaction, number):
    return frame(struct.pack(">IQQIq", metric, transaction, TIME, 3, number))


def gap(transaction, metric=0, count=5, reason=1):
    return frame(struct.pack(">IQIQQQI", 0xFFFFFFFC, transaction, metric, count, TIME, TIME + 1, reason))


def notice(code, detail=""):
    return frame(struct.pack(">III", 0xFFFFFFFB, code, 9) + text(detail))


class FakeTransport(asyncio.Transport):
    def __init__(self, producer, protocol):
        super().__init__()
        self._producer = producer
        self._protocol = protocol
        self.is_paused = False
        self.is_closed = False

    def write(self, data):
        self._producer.take(self, bytes(data))

    def give(self, data):
        """As the network does: not before whoever writes has ended their turn."""
        asyncio.get_running_loop().call_soon(self._give, data)

    def _give(self, data):
        if not self.is_closed:
            self._protocol.data_received(data)

    def lose(self, error=None):
        """After what was given."""
        asyncio.get_running_loop().call_soon(self._lose, error)

    def _lose(self, error):
        if not self.is_closed:
            self.is_closed = True
            self._protocol.connection_lost(error)

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def close(self):
        self.lose()

    abort = close


class FakeProducer:
    """Answers every command, keeps what is not committed, and sends it again on each new connection."""

    CHANNEL = 77

    def __init__(self):
        self.transport = None
        #: (name, bytes after seq) of each command.
        self.commands = []
        #: Frames by transaction id.
        self.kept = {}
        self.bound = {}
        self.next_id = 100
        self.next_transaction = 1000
        self.generation = "g1"
        self.attempts = 0
        #: Fails connecting, as often as it has errors.
        self.refusals = []
        #: Commands that are not answered, and those that were not.
        self.silent = set()
        self.unanswered = []
        #: Statuses by command.
        self.statuses = {}
        self.results = {}

    # As the library's Sessions

    url = "tcp://fake:7650"
    has_several_addresses = False

    async def next(self, listener):
        self.attempts += 1
        if self.refusals:
            raise self.refusals.pop(0)
        connection = Connection("tcp://fake:7650 as alice", 30.0, listener)
        self.transport = FakeTransport(self, connection)
        connection.connection_made(self.transport)
        self.transport.give(capabilities())
        await connection.ready()
        reply = await connection.authenticate("token", b"x", is_last=True)
        self.transport.give(capabilities(self.generation))
        await connection.ready()
        return Session(connection, reply.channel, True)

    def may_continue(self, reason):
        return reason.code in (ErrorCode.CLOSED, ErrorCode.SILENT, ErrorCode.TIMEOUT)

    # As a producer

    def take(self, transport, data):
        while data:
            (length,) = struct.unpack_from(">I", data)
            payload, data = data[4 : 4 + length], data[4 + length :]
            number, seq = struct.unpack_from(">II", payload)
            name = NAMES[number]
            self.commands.append((name, payload[8:]))
            if name in self.silent:
                self.unanswered.append((transport, name, seq, payload[8:]))
            else:
                self._answer(transport, name, seq, payload[8:])

    def answer_late(self):
        """Answers what it was silent about, and everything from now on."""
        self.silent.clear()
        while self.unanswered:
            self._answer(*self.unanswered.pop(0))

    def _answer(self, transport, name, seq, rest):
        if name in self.statuses:
            transport.give(response(seq, self.statuses[name], 0, "as the test wants it"))
            return
        result, after = 0, b""
        if name == "AUTH":
            result = 5
        elif name == "DEF_CHANNEL":
            result = self.CHANNEL
        elif name == "SET_CHANNEL":
            after = b"".join(self.kept[one] for one in sorted(self.kept))
        elif name in ("COLLECT", "QUERY", "EXECUTE"):
            result = self.next_id = self.next_id + 1
            if name == "QUERY":
                after = self._query(result, rest)
            elif name == "EXECUTE" and "result" in self.results:
                after = self._keep(result, self.results["result"])
        elif name == "SUBSCRIBE":
            (metric,) = struct.unpack_from(">I", rest)
            self.bound[metric] = "m"
        elif name == "STOP":
            (metric,) = struct.unpack_from(">I", rest)
            self.bound.pop(metric, None)
        elif name == "COMMIT":
            (transaction,) = struct.unpack_from(">Q", rest)
            for one in list(self.kept):
                if one == transaction or (len(rest) == 12 and one <= transaction):
                    del self.kept[one]
        transport.give(response(seq, 0, result) + after)

    def _query(self, id, rest):
        if rest[4:21] != b"producer.bindings":
            return frame(struct.pack(">IQQId", id, 0, TIME, 5, 0.5))
        records = b"".join(
            struct.pack(">I", 4)
            + text("metric") + struct.pack(">II", 2, metric)
            + text("name") + struct.pack(">I", 7) + text(name)
            + text("mode") + struct.pack(">I", 7) + text("subscribe")
            + text("arguments") + struct.pack(">II", 9, 0)
            for metric, name in self.bound.items()
        )
        return frame(struct.pack(">IQQIII", id, 0, TIME, 10, 9, len(self.bound)) + records)

    def _keep(self, metric, number):
        self.next_transaction += 1
        self.kept[self.next_transaction] = value(metric, self.next_transaction, number)
        return self.kept[self.next_transaction]

    def send(self, *numbers):
        """Values of the metric that is bound."""
        (metric,) = self.bound
        self.transport.give(b"".join(self._keep(metric, number) for number in numbers))

    def send_gap(self):
        self.next_transaction += 1
        self.kept[self.next_transaction] = gap(self.next_transaction)
        self.transport.give(self.kept[self.next_transaction])

    def count(self, name):
        return sum(one == name for one, _ in self.commands)

    @property
    def commits(self):
        return [rest for name, rest in self.commands if name == "COMMIT"]


def unreachable():
    return ConnectionError(ErrorCode.UNREACHABLE, "tcp://fake:7650: nobody is there")
