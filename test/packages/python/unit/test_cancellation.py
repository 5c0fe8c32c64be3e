"""What is given up leaves nothing half done: no binding, no connection, no COMMIT on another channel."""

import asyncio
import struct
import unittest

import cinnabar
from cinnabar._channel_options import ChannelOptions
from cinnabar._consumer import Consumer

from fake_producer import FakeProducer
from skipping_time import run
from test_consumer import take, turns, with_consumer


class ACancelled(unittest.TestCase):
    @with_consumer()
    async def test_follow_is_not_followed_though_the_metric_was_made_later(self, producer, consumer):
        producer.silent.add("COLLECT")
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.follow("x"), 1)
        producer.answer_late()
        await turns()
        self.assertEqual(consumer.name_of(producer.next_id), "")
        producer.transport.lose()
        await asyncio.sleep(1)
        self.assertEqual((producer.count("COLLECT"), producer.count("SUBSCRIBE")), (2, 1))

    @with_consumer()
    async def test_change_of_the_channel_commits_nothing_before_it_is_known_which_channel_it_is(self, producer, consumer):
        producer.send(1, 2)
        loop = consumer.__aiter__()
        await loop.__anext__()
        producer.silent.add("SET_CHANNEL")
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.set_channel(99), 1)
        await loop.__anext__()
        await turns()
        self.assertEqual(producer.commits, [])
        producer.answer_late()
        await turns()
        self.assertEqual((consumer.channel, producer.commits), (99, []))
        # Commits go on there.
        producer.bound = {9: "other"}
        producer.send(3, 4)
        self.assertEqual(await take(consumer, 4), [1, 2, 3, 4])
        await turns()
        self.assertIn(producer.next_transaction - 1, [struct.unpack_from(">Q", rest)[0] for rest in producer.commits])

    def test_close_closes_all_the_same(self):
        async def main():
            producer = FakeProducer()
            consumer = Consumer(producer, ChannelOptions(name="n"), 30.0)
            await consumer.open()
            await consumer.follow("m")
            producer.silent.add("COMMIT")
            producer.send(1, 2)
            loop = consumer.__aiter__()
            for _ in range(2):
                await loop.__anext__()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.close(), 3)
            await turns()
            self.assertTrue(producer.transport.is_closed)
            with self.assertRaises(cinnabar.ConnectionError):
                await consumer.nop()

        run(main())


class Closing(unittest.TestCase):
    @with_consumer()
    async def test_does_not_wait_for_the_loop_of_its_own_task(self, producer, consumer):
        producer.send(1, 2)
        self.assertEqual(await take(consumer, 1), [1])
        begun = asyncio.get_running_loop().time()
        await consumer.close()
        self.assertEqual(asyncio.get_running_loop().time(), begun)

    @with_consumer()
    async def test_leaves_no_connection_that_was_being_made_even_if_its_cancellation_is_lost(self, producer, consumer):
        made = producer.next

        async def next_session(listener):
            # As `asyncio.wait_for` before Python 3.12, where both come at the same time.
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                pass
            return await made(listener)

        producer.next = next_session
        producer.transport.lose()
        await asyncio.sleep(1)
        consumer._end(None)
        await turns(50)
        self.assertEqual(producer.attempts, 2)
        self.assertTrue(producer.transport.is_closed)
