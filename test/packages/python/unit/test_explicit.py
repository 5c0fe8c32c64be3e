"""Values that the program commits itself, one by one."""

import asyncio
import struct
import unittest

from test_consumer import take, turns, with_consumer


def commits(producer):
    """The transaction id of each COMMIT, and whether it covers what is before."""
    return [(struct.unpack_from(">Q", rest)[0], len(rest) == 12) for rest in producer.commits]


async def samples(consumer, count):
    loop = consumer.__aiter__()
    return [await loop.__anext__() for _ in range(count)]


class CommitOfASample(unittest.TestCase):
    @with_consumer(commit="explicit")
    async def test_waits_for_nothing_and_goes_as_one_with_others_while_the_first_is_on_its_way(self, producer, consumer):
        producer.silent.add("COMMIT")
        producer.send(1, 2, 3, 4)
        for sample in await samples(consumer, 4):
            sample.commit()
        await turns()
        self.assertEqual(commits(producer), [(1001, True)])
        producer.answer_late()
        await turns()
        self.assertEqual(commits(producer), [(1001, True), (1004, True)])
        self.assertEqual(producer.kept, {})

    @with_consumer(commit="explicit")
    async def test_is_sent_again_if_the_connection_is_lost_before_it_is_stored(self, producer, consumer):
        producer.send(1, 2, 3)
        first, second, third = await samples(consumer, 3)
        third.commit()
        await turns()
        producer.silent.add("COMMIT")
        second.commit()
        await turns()
        producer.silent.clear()
        producer.transport.lose()
        await asyncio.sleep(1)
        await turns()
        first.commit()
        await turns()
        self.assertEqual(commits(producer), [(1003, False), (1002, False), (1002, False), (1001, True)])
        self.assertEqual(producer.kept, {})

    @with_consumer(commit="explicit")
    async def test_counts_if_the_loop_is_left_directly_after_it(self, producer, consumer):
        await self._left(producer, consumer)

    @with_consumer()
    async def test_counts_in_a_loop_that_commits_by_itself_too(self, producer, consumer):
        await self._left(producer, consumer)

    async def _left(self, producer, consumer):
        producer.send(1, 2)
        async for sample in consumer:
            sample.commit()
            break
        self.assertEqual(await take(consumer, 1), [2])
        await turns()
        self.assertEqual(commits(producer), [(1001, True)])

    @with_consumer(commit="explicit")
    async def test_is_that_of_the_result_of_a_control_too(self, producer, consumer):
        producer.results["result"] = 42
        result = await consumer.execute("control")
        await turns()
        self.assertEqual(commits(producer), [])
        result.commit()
        await turns()
        self.assertEqual(producer.kept, {})

    @with_consumer(commit="explicit")
    async def test_commits_nothing_of_a_channel_that_was_left(self, producer, consumer):
        producer.send(1)
        (sample,) = await samples(consumer, 1)
        await consumer.set_channel(99)
        sample.commit()
        await turns()
        self.assertEqual(commits(producer), [])

    @with_consumer(commit="explicit")
    async def test_in_a_handler_commits_its_value_alone(self, producer, consumer):
        def handler(sample):
            if sample.number == 2:
                sample.commit()
                consumer._mailbox.end(None)

        await consumer.stop(next(iter(producer.bound)))
        await consumer.follow("handled", handler=handler)
        producer.send(1, 2)
        await consumer.run()
        await turns()
        self.assertEqual(commits(producer), [(1002, False)])


class CommitOfAConsumer(unittest.TestCase):
    @with_consumer(commit="explicit")
    async def test_counts_if_the_loop_is_left_directly_after_it(self, producer, consumer):
        producer.send(1, 2)
        async for sample in consumer:
            await consumer.commit(sample.transaction)
            break
        self.assertEqual(await take(consumer, 1), [2])
        self.assertEqual(commits(producer), [(1001, False)])

    @with_consumer(commit="explicit")
    async def test_of_everything_is_done_again_when_it_comes_again(self, producer, consumer):
        producer.send(1, 2, 3)
        await samples(consumer, 3)
        # The COMMIT gets lost with the connection.
        consumer._mailbox.begin_commit(1002, True)
        producer.transport.lose()
        await asyncio.sleep(1)
        await turns()
        self.assertEqual(list(producer.kept), [1003])
