"""One connection: what a server may not send, in pieces of any size, and secrets under compression."""

import random
import struct
import unittest
import zlib

import cinnabar
from cinnabar._connection import Connection
from cinnabar._constants import Command
from cinnabar._deflate import Deflate
from cinnabar.errors import ProtocolError

from fake_producer import capabilities, frame, gap, notice, response, text, value
from skipping_time import run


class Wire:
    """A transport that keeps what is written."""

    def __init__(self):
        self.written = []
        self.is_closed = False

    def write(self, data):
        self.written.append(bytes(data))

    def close(self):
        self.is_closed = True

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Listener:
    def __init__(self):
        self.messages = []
        self.notices = []
        self.reason = None

    def message(self, message):
        self.messages.append(message)

    def notice(self, notice):
        self.notices.append(notice)

    def closed(self, connection, reason, is_ours):
        self.reason = reason


def with_connection(test):
    def wrapper(self):
        async def main():
            listener, wire = Listener(), Wire()
            connection = Connection("tcp://fake:7650 as alice", 30.0, listener)
            connection.connection_made(wire)
            try:
                await test(self, connection, wire, listener)
            finally:
                connection.close()

        run(main())

    return wrapper


class Violations(unittest.TestCase):
    def expect(self, sent, says):
        @with_connection
        async def test(self, connection, wire, listener):
            for data in sent:
                connection.data_received(data)
            self.assertEqual(listener.reason.code, "PROTOCOL")
            self.assertRegex(str(listener.reason), says)
            self.assertEqual(listener.messages, [])
            self.assertTrue(wire.is_closed)

        test(self)

    def test_a_server_begins_with_its_capabilities(self):
        self.expect([response(1)], "began with Response")
        self.expect([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "Is it a Monitoring Protocol server")

    def test_values_come_after_the_login(self):
        for early in (value(7, 1, 2), gap(1)):
            self.expect([capabilities(), early], "sent values before the login")

    def test_a_challenge_is_asked_for(self):
        self.expect([capabilities(), frame(struct.pack(">I", 0xFFFFFFFD) + text("x"))], "without being asked")

    def test_what_does_not_decode_ends_the_connection(self):
        self.expect([capabilities(), frame(struct.pack(">II", 0x80000000, 0))], "no message has the number")
        self.expect([struct.pack(">I", 65_540)], "the limit is 65536")

    @with_connection
    async def test_the_limit_of_frames_grows_only_with_the_login(self, connection, wire, listener):
        connection.data_received(capabilities())
        admitted = connection.authenticate("token", b"x", is_last=True)
        connection.data_received(response(1, 0, 9))
        self.assertEqual((await admitted).channel, 9)
        long = frame(struct.pack(">IQQI", 7, 1, 2, 8) + struct.pack(">I", 100_000) + bytes(100_000))
        connection.data_received(long)
        self.assertEqual(len(listener.messages), 1)

    @with_connection
    async def test_random_bytes_end_the_connection_or_wait_for_more(self, connection, wire, listener):
        for seed in range(300):
            chance = random.Random(seed)
            other = Connection("x", 30.0, Listener())
            other.connection_made(Wire())
            other.data_received(capabilities())
            for _ in range(20):
                words = [chance.choice((0, 8, 12, 16, 0xFFFFFFFF, chance.getrandbits(32))) for _ in range(8)]
                other.data_received(struct.pack(">8I", *words))
            other.close()


class Streams(unittest.TestCase):
    @with_connection
    async def test_do_not_depend_on_how_they_are_cut(self, connection, wire, listener):
        admitted = connection.authenticate("token", b"x", is_last=True)
        stream = capabilities() + response(1, 0, 9) + capabilities("g") + value(7, 1, 2) + gap(3) + notice(1, "full")
        for at in range(len(stream)):
            connection.data_received(stream[at : at + 1])
        self.assertEqual((await admitted).channel, 9)
        self.assertEqual([message.transaction for message in listener.messages], [1, 3])
        self.assertEqual([one.detail for one in listener.notices], ["full"])
        self.assertEqual(connection.capabilities.generation, "g")

    @with_connection
    async def test_end_for_the_reason_that_the_last_notice_gave(self, connection, wire, listener):
        connection.data_received(capabilities() + notice(1, "full") + notice(4, "the user was removed"))
        connection.connection_lost(None)
        self.assertEqual(listener.reason.code, "WITHDRAWN")
        self.assertIn("the user was removed", str(listener.reason))

    @with_connection
    async def test_end_with_an_error_for_all_that_wait(self, connection, wire, listener):
        asked = [connection.request(Command.NOP) for _ in range(3)]
        connection.connection_lost(OSError("cut"))
        for one in asked:
            with self.assertRaises(cinnabar.ConnectionError) as raised:
                await one
            self.assertEqual(raised.exception.code, "CLOSED")


class Compression(unittest.TestCase):
    def test_is_raw_and_flushed_at_each_write(self):
        ours, theirs = Deflate(), zlib.decompressobj(wbits=-15)
        for data, is_secret in ((b"one" * 100, False), (b"secret", True), (b"two", False)):
            self.assertEqual(theirs.decompress(ours.compress(data, is_secret)), data)

    def test_does_not_compress_a_secret_by_what_is_beside_it(self):
        ours = Deflate()
        guess = b"the password is correct horse"
        ours.compress(guess, False)
        alone = Deflate().compress(guess, True)
        self.assertGreaterEqual(len(ours.compress(guess, True)), len(alone) - 1)
        self.assertGreaterEqual(len(ours.compress(guess, False)), len(Deflate().compress(guess, False)))

    def test_of_a_bomb_is_refused_before_it_fills_the_memory(self):
        compressor = zlib.compressobj(wbits=-15)
        bomb = compressor.compress(bytes(100 << 20)) + compressor.flush()
        given = 0
        with self.assertRaises(ProtocolError):
            for piece in Deflate().decompress(bomb):
                given += len(piece)
        self.assertLess(given, len(bomb) * 100 + (2 << 20))

    def test_that_does_not_decode_is_refused(self):
        for data in (b"\xff\xff\xff\xff", zlib.compressobj(wbits=-15).flush()):
            with self.subTest(data), self.assertRaises(ProtocolError):
                list(Deflate().decompress(data))
