"""The library against the vectors that were written by hand from the protocol's page."""

import json
import math
import pathlib
import random
import re
import struct
import unittest

from cinnabar import _commands, _xdr
from cinnabar._constants import BasicType, Command
from cinnabar._framing import Framer, MAX_FRAME_BYTES
from cinnabar._messages import Capabilities, Challenge, GapMessage, NoticeMessage, Response, ValueMessage, read_message
from cinnabar._values import Array, write_arguments
from cinnabar.errors import ProtocolError

FOLDER = pathlib.Path(__file__).parents[4] / "test/vectors/monitor"


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def to_bytes(text):
    """`78*256` is a byte that is repeated."""
    repeated = re.sub(r"\b([0-9a-f]{2})\*(\d+)", lambda match: match[1] * int(match[2]), text)
    return bytes.fromhex(repeated)


def messages():
    values = load("values")
    header = values["header"]
    for one in values["values"]:
        message = {"kind": "value", "metric": 7, "transaction": 12, "time": 1_700_000_000_000_000, "value": one["value"]}
        yield one["title"], to_bytes(f'{one["length"]} {header} {one["hex"]}'), message
    for name in ("values", "messages", "specification"):
        for one in load(name)["vectors"]:
            if "message" in one:
                yield one["title"], to_bytes(one["hex"]), one["message"]


def as_json(value):
    """A value in the form of the vectors."""
    return {"type": value.type.name, "value": bare(value)}


def bare(value):
    if value.type in (BasicType.INT64, BasicType.UINT64):
        return str(value.value)
    if isinstance(value.value, bytes):
        return {"hex": value.value.hex()}
    if isinstance(value.value, tuple):
        return [{"name": field.name, **as_json(field.value)} for field in value.value]
    if isinstance(value.value, Array):
        return {"element": value.value.element.name, "items": [bare(item) for item in value.value.items]}
    if isinstance(value.value, float):
        return number(value.value)
    return value.value


def number(value):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0" if value == 0 and math.copysign(1, value) < 0 else value


def normal(value):
    """Bytes of a vector may be written short or with blanks."""
    if isinstance(value, dict) and set(value) == {"hex"}:
        return {"hex": to_bytes(value["hex"]).hex()}
    if isinstance(value, dict):
        return {key: normal(one) for key, one in value.items()}
    return [normal(one) for one in value] if isinstance(value, list) else value


def shown(message):
    if isinstance(message, ValueMessage):
        parts = {"kind": "value", "metric": message.metric, "transaction": message.transaction, "time": message.time}
        return {**parts, "value": as_json(message.value)}
    if isinstance(message, Response):
        return {"kind": "response", **vars(message)}
    if isinstance(message, Challenge):
        return {"kind": "auth", "data": {"hex": message.data.hex()}}
    if isinstance(message, NoticeMessage):
        return {"kind": "notice", **vars(message)}
    if isinstance(message, GapMessage):
        parts = dict(vars(message))
        return {"kind": "gap", "from": parts.pop("first"), "to": parts.pop("last"), **parts}
    assert isinstance(message, Capabilities)
    parts = {key: list(one) if isinstance(one, tuple) else one for key, one in vars(message).items()}
    parts["maxFrameBytes"] = parts.pop("max_frame_bytes")
    if parts["generation"] == "":
        del parts["generation"]
    return {"kind": "caps", "caps": parts}


def known(message):
    """What the library reads of a message: it passes over who the producer is, and those below it."""
    if message["kind"] != "caps":
        return normal(message)
    caps = {key: one for key, one in message["caps"].items() if key not in ("producer", "below", "channel")}
    return {"kind": "caps", "caps": caps}


def frames_of(data, sizes):
    """The payloads of a stream that comes in pieces of these sizes, and then in one."""
    framer = Framer()
    framer.max_frame_bytes = MAX_FRAME_BYTES
    at = 0
    for size in [*sizes, len(data)]:
        framer.feed(data[at : at + size])
        at += size
        while True:
            payload = framer.next()
            if payload is None:
                break
            yield payload


class Messages(unittest.TestCase):
    def test_each_is_read_as_it_was_meant(self):
        count = 0
        for title, data, message in messages():
            count += 1
            with self.subTest(title):
                # By bytes, unless it is so long that this tells no more.
                sizes = [1] * min(len(data), 4096)
                (payload,) = frames_of(data, sizes)
                self.assertEqual(shown(read_message(payload)), known(message))
        self.assertGreater(count, 60)

    def test_what_breaks_a_rule_is_refused(self):
        refused = [one for one in load("refused")["vectors"] if "command" not in one]
        self.assertGreater(len(refused), 15)
        for one in refused:
            with self.subTest(one["title"]), self.assertRaises(ProtocolError):
                read_message(to_bytes(one["hex"]))

    def test_every_beginning_of_a_message_is_refused(self):
        for title, data, message in messages():
            payload = data[4:]
            for end in range(0, min(len(payload), 512)):
                # Entries of PRODUCER_CAPS are counted, and so is everything else: no beginning is a message.
                with self.subTest(f"{title}, {end} bytes"), self.assertRaises(ProtocolError):
                    read_message(payload[:end])


class Commands(unittest.TestCase):
    def test_each_is_written_as_the_vectors_have_it(self):
        seen = set()
        for vector in [*load("commands")["vectors"], *load("specification")["vectors"]]:
            arguments = self._arguments(vector) if "command" in vector else None
            if arguments is None:
                continue
            with self.subTest(vector["title"]):
                command = Command[vector["command"]]
                self.assertEqual(_commands.write_command(command, vector["seq"], arguments), to_bytes(vector["hex"]))
                seen.add(vector["command"])
        # Those of the other two have arguments of types that the library never writes.
        self.assertEqual(seen, set(Command.__members__) - {"QUERY", "EXECUTE"})

    def _arguments(self, vector):
        """None if the library never writes the types of these arguments."""
        name, fields = vector["command"], vector["fields"]
        if name in ("COLLECT", "QUERY", "EXECUTE", "DEF_CHANNEL"):
            written = {"STRING": str, "BOOLEAN": bool, "DOUBLE": float, "INT64": int, "OPAQUE": self._bytes}
            if not all(one["type"] in written for one in fields["args"]):
                return None
            if any(isinstance(one["value"], dict) and one["type"] == "STRING" for one in fields["args"]):
                return None
            args = {one["name"]: written[one["type"]](one["value"]) for one in fields["args"]}
            name = fields.get("metric", fields.get("control", fields.get("url")))
            return _commands.named(re.sub(r"(.)\*(\d+)$", lambda match: match[1] * int(match[2]), name), args)
        if name in ("STOP", "SUBSCRIBE", "BUFFER", "GET"):
            return _commands.binding(fields["metric"], fields["channel"])
        if name in ("SET_CHANNEL", "DEL_CHANNEL"):
            return _commands.channel(fields["channel"])
        if name == "COMMIT":
            return None if vector.get("canonical") is False else _commands.commit(int(fields["transaction"]), fields["through"])
        if name == "AUTH":
            return _commands.auth(fields["method"], self._bytes(fields["data"]))
        return _commands.layer(fields["layer"]) if name == "WRAP" else b""

    def _bytes(self, value):
        return to_bytes(value["hex"]) if "hex" in value else value["text"].encode()

    def test_arguments_have_the_type_of_their_value(self):
        self.assertEqual(write_arguments({"a": True}), to_bytes("00000001 00000001 61000000 00000006 00000001"))
        self.assertEqual(write_arguments({"a": -1}), to_bytes("00000001 00000001 61000000 00000003 ffffffff ffffffff"))
        self.assertEqual(write_arguments({"a": 2**63}), to_bytes("00000001 00000001 61000000 00000004 80000000 00000000"))
        self.assertEqual(write_arguments({"a": 0.5}), to_bytes("00000001 00000001 61000000 00000005 3fe00000 00000000"))
        self.assertRaises(OverflowError, write_arguments, {"a": 2**64})
        self.assertRaises(OverflowError, write_arguments, {"a": -(2**63) - 1})
        self.assertRaises(TypeError, write_arguments, {"a": None})


class Streams(unittest.TestCase):
    def test_frames_do_not_depend_on_how_the_stream_is_cut(self):
        stream = b"".join(data for _, data, _ in messages() if len(data) < 10_000)
        whole = list(frames_of(stream, []))
        for seed in range(50):
            chance = random.Random(seed)
            sizes = [chance.choice((1, 3, 4, 5, 64, 1000)) for _ in range(200)]
            with self.subTest(seed=seed):
                self.assertEqual(list(frames_of(stream, sizes)), whole)

    def test_a_length_out_of_bounds_is_refused_from_four_bytes(self):
        for length in (0, 4, 9, 10, 11, 65_540, 0xFFFFFFFC):
            framer = Framer()
            framer.feed(struct.pack(">I", length)[:3])
            self.assertIsNone(framer.next())
            framer.feed(struct.pack(">I", length)[3:])
            with self.subTest(length=length), self.assertRaises(ProtocolError):
                framer.next()

    def test_random_bytes_are_a_message_or_refused(self):
        for seed in range(2000):
            chance = random.Random(seed)
            number = chance.choice((7, 0xFFFFFFFB, 0xFFFFFFFC, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF))
            length = chance.randrange(0, 120)
            words = [chance.choice((0, 1, 4, 7, 9, 10, 11, 0xFFFFFFFF, chance.getrandbits(32))) for _ in range(length)]
            payload = struct.pack(f">{length + 1}I", number, *words)
            with self.subTest(seed=seed):
                try:
                    read_message(payload)
                except ProtocolError:
                    pass

    def test_changed_vectors_are_a_message_or_refused(self):
        chance = random.Random(1)
        for _, data, _ in messages():
            for _ in range(30):
                payload = bytearray(data[4:2000])
                for _ in range(chance.randrange(1, 4)):
                    payload[chance.randrange(len(payload))] = chance.getrandbits(8)
                try:
                    read_message(bytes(payload))
                except ProtocolError:
                    pass


class Xdr(unittest.TestCase):
    def test_opaque_is_padded_with_zeros(self):
        for length in range(9):
            data = bytes(range(1, length + 1))
            written = _xdr.opaque(data)
            self.assertEqual(len(written) % 4, 0)
            self.assertEqual(_xdr.Reader(written).opaque(), data)
