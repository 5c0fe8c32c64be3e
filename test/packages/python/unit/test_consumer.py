"""A consumer and a producer in memory: values, commits, lost connections, losses, and how it ends."""

import asyncio
import struct
import unittest

import cinnabar
from cinnabar._channel_options import ChannelOptions
from cinnabar._consumer import Consumer

from fake_producer import FakeProducer, notice, response, unreachable, value
from skipping_time import run


def with_consumer(**options):
    """The test is a coroutine that is given a producer and a consumer of it that follows `m`."""

    def decorate(test):
        def wrapper(self):
            async def main():
                producer = FakeProducer()
                consumer = Consumer(producer, ChannelOptions(**{"name": "n", **options}), 30.0)
                await consumer.open()
                await consumer.follow("m")
                try:
                    await test(self, producer, consumer)
                finally:
                    await consumer.close()

            run(main())

        return wrapper

    return decorate


async def take(consumer, count):
    """So many numbers of a loop, of which the last was not handled."""
    numbers = []
    async for sample in consumer:
        numbers.append(sample.number)
        if len(numbers) == count:
            return numbers


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


class Values(unittest.TestCase):
    @with_consumer()
    async def test_come_in_their_order_and_are_committed_together(self, producer, consumer):
        producer.send(*range(100))
        self.assertEqual(await take(consumer, 100), list(range(100)))
        await turns()
        # The last is still in the loop.
        self.assertEqual(len(producer.kept), 1)
        self.assertLess(producer.count("COMMIT"), 5)

    @with_consumer()
    async def test_at_which_a_loop_is_left_are_the_first_of_the_next(self, producer, consumer):
        producer.send(1, 2, 3)
        self.assertEqual(await take(consumer, 2), [1, 2])
        self.assertEqual(await take(consumer, 2), [2, 3])

    @with_consumer()
    async def test_that_were_committed_in_the_loop_are_handled(self, producer, consumer):
        producer.send(1, 2)
        async for sample in consumer:
            await consumer.commit(sample.transaction)
            break
        self.assertEqual(await take(consumer, 1), [2])
        self.assertEqual(len(producer.kept), 1)

    @with_consumer(commit="explicit")
    async def test_are_committed_by_the_program_alone_if_it_wants(self, producer, consumer):
        producer.send(1, 2, 3)
        loop = consumer.__aiter__()
        for _ in range(3):
            sample = await loop.__anext__()
        await turns()
        self.assertEqual(producer.count("COMMIT"), 0)
        await consumer.commit(sample.transaction, through=True)
        self.assertEqual(producer.kept, {})

    @with_consumer()
    async def test_go_to_their_handler_one_after_the_other(self, producer, consumer):
        seen = []

        async def slow(sample):
            await asyncio.sleep(1)
            seen.append(sample.number)
            if sample.number == 3:
                consumer._end(None)

        await consumer.stop(next(iter(producer.bound)))
        await consumer.follow("slow", handler=slow)
        producer.send(1, 2, 3)
        await consumer.run()
        self.assertEqual(seen, [1, 2, 3])

    @with_consumer()
    async def test_whose_handler_raises_come_again(self, producer, consumer):
        seen = []

        def failing(sample):
            seen.append(sample.number)
            if len(seen) == 2:
                raise KeyError("the handler")

        producer.bound.clear()
        await consumer.follow("failing", handler=failing)
        producer.send(1, 2)
        with self.assertRaises(KeyError):
            await consumer.run()
        asyncio.get_running_loop().call_later(1, consumer._end, None)
        await consumer.run()
        self.assertEqual(seen, [1, 2, 2])

    @with_consumer()
    async def test_that_wait_make_the_producer_wait(self, producer, consumer):
        producer.send(*range(1025))
        await turns()
        self.assertTrue(producer.transport.is_paused)
        await take(consumer, 600)
        self.assertFalse(producer.transport.is_paused)

    @with_consumer()
    async def test_are_read_while_a_response_is_due_however_many_wait(self, producer, consumer):
        producer.send(*range(1025))
        await turns()
        producer.silent.add("NOP")
        asked = asyncio.ensure_future(consumer.nop())
        await turns()
        self.assertFalse(producer.transport.is_paused)
        asked.cancel()

    @with_consumer()
    async def test_of_a_slow_program_are_read_a_little_now_and_then(self, producer, consumer):
        producer.send(*range(1025))
        await turns()
        await asyncio.sleep(10.5)
        self.assertFalse(producer.transport.is_paused)
        self.assertEqual(producer.attempts, 1)

    @with_consumer()
    async def test_are_for_one_reader_at_a_time(self, producer, consumer):
        first = asyncio.ensure_future(consumer.__aiter__().__anext__())
        await turns()
        with self.assertRaises(RuntimeError):
            consumer.__aiter__()
        producer.send(1)
        self.assertEqual((await first).number, 1)

    @with_consumer()
    async def test_are_not_lost_when_the_wait_for_one_is_given_up(self, producer, consumer):
        loop = consumer.__aiter__()
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(loop.__anext__(), 1)
        producer.send(1)
        self.assertEqual((await loop.__anext__()).number, 1)


class LostConnections(unittest.TestCase):
    @with_consumer()
    async def test_are_made_again_and_repeats_are_not_handed_out(self, producer, consumer):
        producer.silent.add("COMMIT")
        producer.send(1, 2, 3)
        loop = consumer.__aiter__()
        self.assertEqual([(await loop.__anext__()).number for _ in range(3)], [1, 2, 3])
        self.assertEqual(len(producer.kept), 3)
        producer.silent.clear()
        producer.transport.lose()
        await asyncio.sleep(1)
        producer.send(4)
        # 3 was in the loop, and is handled when the next one is requested.
        self.assertEqual((await loop.__anext__()).number, 4)
        await turns()
        self.assertEqual(len(producer.kept), 1)
        self.assertEqual(producer.count("COLLECT"), 1)

    @with_consumer()
    async def test_tell_their_story(self, producer, consumer):
        story = []
        for event in (cinnabar.Disconnected, cinnabar.Retrying, cinnabar.Connected, cinnabar.Closed):
            consumer.on(event, lambda event: story.append(type(event).__name__))
        producer.refusals = [unreachable(), unreachable()]
        producer.transport.lose()
        await asyncio.sleep(5)
        self.assertEqual(story, ["Disconnected", "Retrying", "Retrying", "Retrying", "Connected"])
        await consumer.close()
        self.assertEqual(story[-1], "Closed")

    @with_consumer()
    async def test_are_made_again_at_intervals_that_grow_to_ten_seconds(self, producer, consumer):
        delays = []
        consumer.on(cinnabar.Retrying, lambda event: delays.append(event.delay))
        producer.refusals = [unreachable() for _ in range(12)]
        producer.transport.lose()
        await asyncio.sleep(200)
        self.assertEqual(len(delays), 13)
        for pauses, delay in enumerate(delays):
            longest = min(0.1 * 2**pauses, 10)
            self.assertTrue(longest / 2 <= delay <= longest, delays)

    @with_consumer()
    async def test_bind_what_is_no_longer_bound(self, producer, consumer):
        producer.bound.clear()
        producer.transport.lose()
        await asyncio.sleep(1)
        producer.send(7)
        self.assertEqual(await take(consumer, 1), [7])
        self.assertEqual(producer.count("COLLECT"), 2)

    @with_consumer()
    async def test_let_commands_wait_for_the_next_one(self, producer, consumer):
        producer.transport.lose()
        await turns()
        self.assertIsNone(consumer.capabilities)
        self.assertEqual((await consumer.query("x")).number, 0.5)

    @with_consumer()
    async def test_fail_the_commands_that_were_on_their_way(self, producer, consumer):
        producer.silent.add("NOP")
        asked = asyncio.ensure_future(consumer.nop())
        await turns()
        producer.transport.lose()
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await asked
        self.assertEqual(raised.exception.code, "CLOSED")

    @with_consumer()
    async def test_repeat_a_commit(self, producer, consumer):
        producer.send(1)
        producer.silent.add("COMMIT")
        (transaction,) = producer.kept
        committing = asyncio.ensure_future(consumer.commit(transaction))
        await turns()
        producer.silent.clear()
        producer.transport.lose()
        await committing
        self.assertEqual(producer.kept, {})

    @with_consumer()
    async def test_are_noticed_after_thirty_seconds_of_silence(self, producer, consumer):
        await asyncio.sleep(14)
        self.assertEqual(producer.count("NOP"), 0)
        await asyncio.sleep(10)
        self.assertEqual(producer.count("NOP"), 1)
        lost = []
        consumer.on(cinnabar.Disconnected, lambda event: lost.append(event.error.code))
        producer.silent.add("NOP")
        await asyncio.sleep(45)
        self.assertEqual(lost, ["SILENT"])
        self.assertEqual(producer.attempts, 2)

    @with_consumer()
    async def test_are_not_made_again_where_that_would_be_wrong(self, producer, consumer):
        producer.transport.give(notice(2, "another has it"))
        producer.transport.lose()
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await take(consumer, 1)
        self.assertEqual(raised.exception.code, "SUPERSEDED")
        self.assertEqual(producer.attempts, 1)

    @with_consumer(reconnect=False)
    async def test_end_a_consumer_that_wants_it(self, producer, consumer):
        producer.transport.lose()
        with self.assertRaises(cinnabar.ConnectionError):
            await take(consumer, 1)

    @with_consumer()
    async def test_bring_the_result_of_a_control_on_the_next_one(self, producer, consumer):
        running = asyncio.ensure_future(consumer.execute("control"))
        await turns()
        result = producer.next_id
        producer.transport.lose()
        await asyncio.sleep(1)
        producer.transport.give(value(result, 5000, 42))
        self.assertEqual((await running).number, 42)

    @with_consumer()
    async def test_in_another_generation_know_no_transaction_ids(self, producer, consumer):
        producer.send(1)
        self.assertEqual(await take(consumer, 1), [1])
        restored = []
        consumer.on(cinnabar.Restored, restored.append)
        producer.generation = "g2"
        producer.transport.lose()
        await asyncio.sleep(1)
        self.assertEqual(await take(consumer, 1), [1])
        self.assertEqual(restored, [cinnabar.Restored("g1", "g2")])


class Channels(unittest.TestCase):
    @with_consumer()
    async def test_that_are_gone_end_the_consumer(self, producer, consumer):
        # Its name finds another one, which binds nothing.
        producer.CHANNEL = 88
        producer.bound.clear()
        producer.transport.lose()
        await asyncio.sleep(1)
        self.assertEqual(consumer.channel, 88)
        producer.send(1)
        self.assertEqual(await take(consumer, 1), [1])
        producer.statuses["SET_CHANNEL"] = 9
        producer.transport.lose()
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await take(consumer, 2)
        self.assertEqual(raised.exception.code, "CHANNEL_GONE")

    @with_consumer()
    async def test_tell_another_server_at_one_of_several_addresses(self, producer, consumer):
        producer.has_several_addresses = True
        producer.generation = "another"
        producer.statuses["SET_CHANNEL"] = 9
        producer.transport.lose()
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await take(consumer, 1)
        self.assertEqual(raised.exception.code, "OTHER_SERVER")
        # The channel was looked for by its id, since a name would have made one there.
        self.assertEqual(producer.count("DEF_CHANNEL"), 1)

    @with_consumer()
    async def test_know_what_they_bind_and_nobody_follows(self, producer, consumer):
        producer.bound[9] = "other"
        producer.transport.lose()
        await asyncio.sleep(1)
        self.assertEqual([(one.id, one.metric, one.mode) for one in consumer.unfollowed], [(9, "other", "subscribe")])
        self.assertEqual(consumer.name_of(9), "other")
        await consumer.stop(9)
        self.assertEqual(consumer.unfollowed, [])

    @with_consumer()
    async def test_are_left_for_others(self, producer, consumer):
        producer.send(1)
        await turns()
        producer.bound = {9: "other"}
        await consumer.set_channel(99)
        self.assertEqual(consumer.channel, 99)
        self.assertEqual([one.metric for one in consumer.unfollowed], ["other"])


class Losses(unittest.TestCase):
    @with_consumer()
    async def test_come_in_their_place(self, producer, consumer):
        story = []
        consumer.on(cinnabar.Gap, story.append)
        producer.send(1)
        producer.send_gap()
        producer.send(2)
        async for sample in consumer:
            story.append(sample.number)
            if sample.number == 2:
                break
        self.assertEqual([one if isinstance(one, int) else one.reason for one in story], [1, "overflow", 2])
        gap = story[1]
        self.assertEqual((gap.count, gap.metric, gap.last - gap.first), (5, "", 1))
        await turns()
        self.assertEqual(len(producer.kept), 1)

    @with_consumer()
    async def test_whose_listener_fails_come_again(self, producer, consumer):
        def failing(_):
            raise KeyError("the listener")

        remove = consumer.on(cinnabar.Gap, failing)
        producer.send_gap()
        producer.send(1)
        with self.assertRaises(KeyError):
            await take(consumer, 1)
        remove()
        gaps = []
        consumer.on(cinnabar.Gap, gaps.append)
        self.assertEqual(await take(consumer, 1), [1])
        self.assertEqual(len(gaps), 1)


class Commands(unittest.TestCase):
    @with_consumer()
    async def test_are_refused_with_the_words_of_the_server(self, producer, consumer):
        producer.statuses["QUERY"] = 7
        with self.assertRaises(cinnabar.StatusError) as raised:
            await consumer.query("x")
        error = raised.exception
        self.assertEqual((error.command, error.status, error.detail), ("QUERY", "NO_SUCH_METRIC", "as the test wants it"))
        producer.statuses["NOP"] = 4711
        with self.assertRaises(cinnabar.StatusError) as raised:
            await consumer.nop()
        self.assertEqual(raised.exception.status, 4711)

    @with_consumer()
    async def test_without_a_response_fail_after_their_deadline(self, producer, consumer):
        producer.silent.add("COLLECT")
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await consumer.collect("x")
        self.assertEqual(raised.exception.code, "TIMEOUT")
        # A response that comes late is no violation.
        await consumer.nop()

    @with_consumer()
    async def test_that_are_given_up_leave_nothing_to_others(self, producer, consumer):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.execute("control"), 1)
        producer.transport.give(value(producer.next_id, 5000, 42))
        await turns()
        self.assertEqual([struct.unpack(">Q", rest)[0] for rest in producer.commits], [5000])

    @with_consumer()
    async def test_to_follow_that_are_given_up_leave_nothing_bound(self, producer, consumer):
        producer.silent.add("SUBSCRIBE")
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.follow("x"), 1)
        await turns()
        self.assertEqual(producer.commands[-1], ("STOP", struct.pack(">II", producer.next_id, 0)))
        producer.silent.clear()
        producer.transport.lose()
        await asyncio.sleep(1)
        self.assertEqual(producer.count("SUBSCRIBE"), 2)

    @with_consumer()
    async def test_that_were_never_sent_may_not_be_answered(self, producer, consumer):
        producer.transport.give(response(4711))
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await take(consumer, 1)
        self.assertEqual(raised.exception.code, "PROTOCOL")
        self.assertIn("answered a command that was never sent", str(raised.exception))


class End(unittest.TestCase):
    def test_commits_what_was_handled_and_not_the_value_in_the_loop(self):
        async def main():
            producer = FakeProducer()
            consumer = Consumer(producer, ChannelOptions(name="n"), 30.0)
            await consumer.open()
            await consumer.follow("m")
            producer.send(1, 2)
            self.assertEqual(await take(consumer, 2), [1, 2])
            await consumer.close()
            self.assertEqual(len(producer.kept), 1)
            self.assertTrue(producer.transport.is_closed)
            with self.assertRaises(cinnabar.ConnectionError):
                await consumer.nop()

        run(main())

    @with_consumer()
    async def test_waits_for_the_commits_of_what_was_handled(self, producer, consumer):
        producer.silent.add("COMMIT")
        producer.send(1, 2, 3)
        loop = consumer.__aiter__()
        for _ in range(3):
            await loop.__anext__()
            await turns()
        self.assertEqual(producer.count("COMMIT"), 1)
        closing = asyncio.ensure_future(consumer.close())
        # Longer than it waits for the loop.
        await asyncio.sleep(5)
        self.assertFalse(producer.transport.is_closed)
        producer.answer_late()
        await closing
        # The last is still in the loop.
        self.assertEqual(len(producer.kept), 1)

    def test_ends_a_loop_of_another_task(self):
        async def main():
            producer = FakeProducer()
            consumer = Consumer(producer, ChannelOptions(name="n"), 30.0)
            await consumer.open()
            await consumer.follow("m")
            reading = asyncio.ensure_future(self._all(consumer))
            producer.send(1, 2)
            await turns()
            await consumer.close()
            self.assertEqual(await reading, [1, 2])
            self.assertEqual(producer.kept, {})

        run(main())

    async def _all(self, consumer):
        return [sample.number async for sample in consumer]

    @with_consumer()
    async def test_comes_with_the_error_of_a_listener(self, producer, consumer):
        def failing(_):
            raise KeyError("the listener")

        consumer.on(cinnabar.Notice, failing)
        producer.transport.give(notice(1, "window full"))
        with self.assertRaises(KeyError):
            await take(consumer, 1)
