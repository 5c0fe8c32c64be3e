"""The library and a server that test/packages/python/server.test.ts has started."""

import asyncio
import datetime
import os
import pathlib
import ssl
import unittest
import uuid

import cinnabar

URL = os.environ["CINNABAR_URL"]
TLS_URL = os.environ["CINNABAR_TLS_URL"]
AUTHORITIES = os.environ["CINNABAR_AUTHORITIES"]
PASSWORD = pathlib.Path(os.environ["CINNABAR_PASSWORD_FILE"]).read_text()
#: Nothing here takes as long: ends what would never come.
PATIENCE = 60


def connect(url=URL, **options):
    return cinnabar.connect(url, **{"identity": "admin", "password": PASSWORD, **options})


def trusting():
    """A context that trusts the authority of the tests."""
    context = ssl.create_default_context(cafile=AUTHORITIES)
    # Its certificate has no key identifier, on which Python 3.13 insists.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def fresh():
    """A name that no other test uses."""
    return f"test {uuid.uuid4()}"


async def take(consumer, count):
    """So many samples, all of them handled."""
    samples = []
    async for sample in consumer:
        samples.append(sample)
        if len(samples) == count:
            await consumer.commit(sample.transaction)
            return samples


async def channel_of(consumer):
    """The ledger of the current channel."""
    (ledger,) = (await consumer.query("producer.channels", {"channel": str(consumer.channel)})).plain
    return ledger


class Live(unittest.IsolatedAsyncioTestCase):
    async def within(self, work):
        return await asyncio.wait_for(work, PATIENCE)


class Values(Live):
    async def test_of_a_metric_come_in_order_and_are_committed(self):
        async with connect(name=fresh()) as consumer:
            followed = await consumer.follow("host.load.one", {"interval_ms": 20})
            samples = await self.within(take(consumer, 5))
            transactions = [sample.transaction for sample in samples]
            self.assertEqual(transactions, sorted(set(transactions)))
            for sample in samples:
                self.assertEqual((sample.metric, sample.name, sample.id), ("host.load.one", "host.load.one", followed.id))
                self.assertIsInstance(sample.number, float)
                self.assertGreater(sample.time, 1_600_000_000_000_000)
                self.assertEqual(sample.place, cinnabar.Place(consumer.generation, sample.transaction))
            await followed.stop()
            ledger = await channel_of(consumer)
            self.assertGreaterEqual(ledger["committed"], 5)

    async def test_of_a_pattern_have_labels_and_names(self):
        seen = {}
        async with connect(name=fresh()) as consumer:

            async def handler(sample):
                seen[sample.metric] = sample.number
                if len(seen) == 3:
                    raise EOFError

            await consumer.follow("host.load.*", {"interval_ms": 20}, handler)
            with self.assertRaises(EOFError):
                await self.within(consumer.run())
        self.assertEqual(set(seen), {"host.load.one", "host.load.five", "host.load.fifteen"})

    async def test_that_were_not_committed_come_again_to_the_next_run(self):
        name = fresh()
        async with connect(name=name, commit="explicit") as consumer:
            await consumer.follow("host.load.one", {"interval_ms": 20})
            first = (await self.within(take_uncommitted(consumer, 3)))[0]
            channel = consumer.channel
        async with connect(name=name, commit="explicit") as consumer:
            self.assertEqual(consumer.channel, channel)
            self.assertEqual([one.metric for one in consumer.unfollowed], ["host.load.one"])
            await consumer.follow("host.load.one", {"interval_ms": 20})
            self.assertEqual(consumer.unfollowed, [])
            again = await self.within(take_uncommitted(consumer, 3))
            self.assertEqual(again[0].transaction, first.transaction)
            await consumer.commit(again[-1].transaction, through=True)
            place = again[-1].place
        async with connect(name=name, channel=channel, after=place) as consumer:
            await consumer.follow("host.load.one", {"interval_ms": 20})
            (next_one,) = await self.within(take(consumer, 1))
            self.assertGreater(next_one.transaction, place.transaction)

    async def test_that_wait_are_sent_by_get(self):
        async with connect(durable=False) as consumer:
            metric = await consumer.collect("host.load.one", {"interval_ms": 20})
            await consumer.buffer(metric)
            await consumer.get(metric)
            (sample,) = await self.within(take(consumer, 1))
            self.assertEqual((sample.id, sample.name), (metric, ""))
            await consumer.stop(metric)


class History(Live):
    async def test_is_read_by_names_labels_and_times(self):
        async with connect(durable=False) as consumer:

            async def remembered():
                while True:
                    seen = [series async for series in consumer.history("host.load.o*")]
                    if seen:
                        return seen
                    await asyncio.sleep(0.05)

            (series,) = await self.within(remembered())
            self.assertEqual((series.tenant, series.metric, series.name), ("", "host.load.one", "host_load_one"))
            self.assertEqual((len(series.times), list(series.labels)), (len(series.values), ["host"]))
            first = datetime.datetime.fromtimestamp(series.times[0] / 1e6, datetime.timezone.utc)
            for since, until, labels, count in (
                (first, series.times[0], series.labels, 1),
                (0, first - datetime.timedelta(seconds=1), None, 0),
                (first, None, {"host": "no*where"}, 0),
            ):
                found = [one async for one in consumer.history("host.load.one", since=since, until=until, labels=labels)]
                self.assertEqual(sum(len(one.times) for one in found), count)

    async def test_is_not_asked_for_with_what_is_no_time(self):
        async with connect(durable=False) as consumer:
            for wrong in ({"since": -1}, {"until": datetime.datetime(2026, 1, 1)}, {"labels": {"to": "x"}}):
                with self.assertRaises(ValueError):
                    consumer.history("host.load.one", **wrong)


class Expressions(Live):
    async def test_are_evaluated_over_the_history_at_a_time_and_over_a_range(self):
        async with connect(durable=False) as consumer:

            async def remembered():
                while True:
                    result = await consumer.evaluate("host_load_one * 0 + 1")
                    if result.series:
                        return result
                    await asyncio.sleep(0.05)

            result = await self.within(remembered())
            (series,) = result.series
            self.assertEqual((result.type, series.name, list(series.labels), series.values), ("vector", "", ["host"], [1.0]))
            time = series.times[0]
            over = await consumer.evaluate("vector(2)", since=time - 120_000_000, until=time, step=60_000_000)
            self.assertEqual((over.type, [one.values for one in over.series]), ("matrix", [[2.0, 2.0, 2.0]]))

    async def test_say_what_is_wrong_with_them(self):
        async with connect(durable=False) as consumer:
            with self.assertRaises(cinnabar.ExpressionError) as caught:
                await consumer.evaluate("sum(host_load_one[5m])")
            self.assertEqual((caught.exception.type, caught.exception.position), ("bad_data", (4, 21)))


async def take_uncommitted(consumer, count):
    samples = []
    async for sample in consumer:
        samples.append(sample)
        if len(samples) == count:
            return samples


class Commands(Live):
    async def test_query_gives_a_value_or_a_list(self):
        async with connect() as consumer:
            one = await consumer.query("host.load.one")
            self.assertIs(one.value.type, cinnabar.BasicType.DOUBLE)
            self.assertEqual(one.elements, [one])
            several = await consumer.query("host.load.*")
            self.assertEqual([each.metric for each in several.elements], ["host.load.fifteen", "host.load.five", "host.load.one"])
            self.assertTrue(all(each.time > 1_600_000_000_000_000 for each in several.elements))
            self.assertFalse(several.is_cut)

    async def test_execute_gives_the_result_and_commits_it(self):
        async with connect(name=fresh()) as consumer:
            result = await consumer.execute("channel.configure", {"channel": consumer.channel, "window": 1024})
            self.assertEqual(result.plain, {"outcome": "ok", "detail": result.plain["detail"], "value": None})
            while (ledger := await channel_of(consumer))["committed"] == 0:
                await asyncio.sleep(0)
            self.assertEqual((ledger["window"], ledger["in_flight"]), (1024, 0))

    async def test_what_is_refused_says_why(self):
        async with connect() as consumer:
            with self.assertRaises(cinnabar.StatusError) as raised:
                await consumer.query("host.nonsense")
            self.assertEqual((raised.exception.command, raised.exception.status), ("QUERY", "NO_SUCH_METRIC"))
            self.assertIn("host.nonsense", raised.exception.detail)
            with self.assertRaises(cinnabar.StatusError):
                await consumer.execute("no.such.control")

    async def test_channels_are_defined_taken_and_deleted(self):
        async with connect() as consumer:
            channel = await consumer.def_channel("", {"name": fresh()})
            await consumer.set_channel(channel)
            self.assertEqual(consumer.channel, channel)
            await consumer.follow("host.load.one", {"interval_ms": 20})
            await self.within(take(consumer, 1))
            other = await consumer.def_channel("", {"name": fresh()})
            await consumer.del_channel(other)
            with self.assertRaises(cinnabar.StatusError) as raised:
                await consumer.set_channel(other)
            self.assertEqual(raised.exception.status, "NO_SUCH_CHANNEL")
            await consumer.nop()

    async def test_many_at_once_are_answered_each_by_its_own(self):
        async with connect() as consumer:
            names = ["host.load.one", "host.load.five", "host.load.fifteen"] * 50
            samples = await self.within(asyncio.gather(*(consumer.query(name) for name in names)))
            self.assertEqual([sample.metric for sample in samples], names)


class Connecting(Live):
    async def test_over_tls_is_confidential(self):
        async with connect(TLS_URL, ssl=trusting()) as consumer:
            self.assertTrue(consumer.is_confidential)
            await consumer.nop()

    async def test_to_a_server_that_is_not_trusted_is_refused(self):
        for url, wrap in ((TLS_URL, ()), (URL.replace("127.0.0.1", "localhost"), ("tls",))):
            with self.assertRaises(cinnabar.ConnectionError) as raised:
                await connect(url, wrap=wrap)
            self.assertEqual(raised.exception.code, "UNTRUSTED")

    async def test_adds_the_layers_that_are_wanted(self):
        for wrap in (["tls"], ["deflate"], ["tls", "deflate"]):
            async with connect(URL, wrap=wrap, ssl=trusting(), server_hostname="localhost", name=fresh()) as consumer:
                await consumer.follow("host.load.one", {"interval_ms": 10})
                await self.within(take(consumer, 20))
                result = await consumer.execute("channel.configure", {"channel": consumer.channel, "window": 1024})
                self.assertEqual(result.plain["outcome"], "ok")
                (row,) = [
                    one for one in (await consumer.query("producer.connections")).plain if one["channel"] == consumer.channel
                ]
                self.assertEqual((row["layers"], row["method"]), (",".join(wrap), "scram-sha-256"))

    async def test_with_a_wrong_password_is_refused_and_does_not_repeat_it(self):
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await connect(password="a wrong password")
        self.assertEqual(raised.exception.code, "LOGIN_FAILED")
        self.assertNotIn("a wrong password", str(raised.exception))

    async def test_by_a_token_that_a_function_provides(self):
        token = cinnabar.new_token()
        async with connect() as consumer:
            result = await consumer.execute("token.add", {"user": "admin", "hash": token.hash, "expires_in_s": 3600})
            self.assertEqual(result.plain["outcome"], "ok")

        async def provide():
            return token.token

        async with cinnabar.connect(URL, token=provide) as consumer:
            await consumer.nop()

    async def test_takes_the_first_address_that_answers(self):
        async with connect(["tcp://127.0.0.1:1", URL], name=fresh()) as consumer:
            await consumer.nop()
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await connect(["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"])
        self.assertEqual(raised.exception.code, "UNREACHABLE")
        self.assertIn("127.0.0.1:2", str(raised.exception))

    async def test_waits_for_a_server_that_is_not_up(self):
        attempts = []
        with self.assertRaises(cinnabar.ConnectionError) as raised:
            await connect("tcp://127.0.0.1:1", wait_for_server=0.5, retrying=attempts.append)
        self.assertEqual(raised.exception.code, "TIMEOUT")
        self.assertEqual([event.attempt for event in attempts], list(range(1, len(attempts) + 1)))
        self.assertGreater(len(attempts), 0)

    async def test_to_a_channel_that_another_takes_ends_the_loop(self):
        name = fresh()
        async with connect(name=name) as first:
            await first.follow("host.load.one")
            async with connect(name=name) as second:
                with self.assertRaises(cinnabar.ConnectionError) as raised:
                    async for _ in first:
                        pass
                self.assertEqual(raised.exception.code, "SUPERSEDED")
                await second.nop()


class Losses(Live):
    async def test_are_reported_in_their_place(self):
        gaps = []
        async with connect() as other, connect(name=fresh()) as consumer:
            consumer.on(cinnabar.Gap, gaps.append)
            channel = consumer.channel
            await consumer.execute("channel.configure", {"channel": channel, "window": 1})
            await consumer.follow("host.load.one", {"interval_ms": 10})
            loop = consumer.__aiter__()
            await self.within(loop.__anext__())
            # The window is full while the first value is not handled.
            while (await channel_of(consumer))["queued"] < 3:
                await asyncio.sleep(0)
            await other.execute("channel.purge", {"channel": channel})
            while not gaps:
                await self.within(loop.__anext__())
        self.assertEqual(gaps[0].reason, "purged")
        self.assertGreaterEqual(gaps[0].count, 3)
