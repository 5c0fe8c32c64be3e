"""When a silent server counts as lost."""

import asyncio
import unittest
from unittest import mock

import cinnabar
from cinnabar._credentials import PasswordCredentials, Secret
from cinnabar._flow_control import FlowControl
from cinnabar._session import Security, Session, parse_url
from cinnabar._sessions import Sessions

from skipping_time import run
from test_connection import Listener


def with_flow(test):
    """The test is given a flow control, and the list of what it does."""

    def wrapper(self):
        async def main():
            calls = []
            flow = FlowControl(
                pause=lambda: calls.append("pause"),
                resume=lambda: calls.append("resume"),
                is_response_due=lambda: False,
                probe=lambda: calls.append("probe"),
                dead=lambda silent: calls.append(f"dead after {silent:g}"),
            )
            flow.allow_silence(3.0)
            try:
                await test(self, flow, calls)
            finally:
                flow.end()

        run(main())

    return wrapper


class Silence(unittest.TestCase):
    @with_flow
    async def test_is_probed_after_half_of_the_time_that_is_allowed(self, flow, calls):
        await asyncio.sleep(1.49)
        self.assertEqual(calls, [])
        await asyncio.sleep(0.02)
        self.assertEqual(calls, ["probe"])
        flow.received(24)
        await asyncio.sleep(1.51)
        self.assertEqual(calls, ["probe", "probe"])
        await asyncio.sleep(1.47)
        self.assertEqual(calls, ["probe", "probe"])
        await asyncio.sleep(0.04)
        self.assertEqual(calls, ["probe", "probe", "dead after 3"])

    @with_flow
    async def test_counts_from_when_reading_is_no_longer_paused(self, flow, calls):
        flow.hold(True, False)
        flow.allow_silence(3.0)
        await asyncio.sleep(60)
        self.assertEqual(calls, ["pause"])
        flow.hold(False, False)
        await asyncio.sleep(1.51)
        self.assertEqual(calls, ["pause", "resume", "probe"])

    @with_flow
    async def test_of_a_program_that_was_busy_is_not_that_of_the_server(self, flow, calls):
        await asyncio.sleep(1.51)
        self.assertEqual(calls, ["probe"])
        # A handler takes its time, so that all timers are due before anything is sent or read.
        flow._loop._skipping.now += 600
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        flow.received(24)
        await asyncio.sleep(0.2)
        self.assertEqual(calls, ["probe"])


class SeveralAddresses(unittest.TestCase):
    URLS = ("tcp://a:1", "tcp://b:2", "tcp://c:3")

    def allowed(self, urls, silence):
        given = []

        async def open_session(address, *rest):
            given.append((address.url, rest[-2]))
            return Session(None, 9, True)

        async def main():
            credentials = PasswordCredentials("alice", Secret("x"))
            sessions = Sessions([parse_url(url) for url in urls], credentials, Security(None, None, ()), 30.0, silence)
            with mock.patch("cinnabar._sessions.open_session", open_session):
                await sessions.next(Listener())
                silent = cinnabar.ConnectionError(cinnabar.ErrorCode.SILENT, "silent")
                self.assertTrue(sessions.may_continue(silent))
                await sessions.next(Listener())

        run(main())
        return given

    def test_may_be_silent_for_three_seconds_and_a_silent_one_is_tried_last(self):
        self.assertEqual(self.allowed(self.URLS, None), [("tcp://a:1", 3.0), ("tcp://b:2", 3.0)])

    def test_and_a_single_one_may_be_silent_for_as_long_as_was_asked_for(self):
        self.assertEqual(self.allowed(self.URLS[:2], 10.0), [("tcp://a:1", 10.0), ("tcp://b:2", 10.0)])
        self.assertEqual(self.allowed(self.URLS[:1], None), [("tcp://a:1", None)] * 2)

    def test_the_time_has_bounds(self):
        for silence in (0, 0.99, 86_401, float("nan"), float("inf")):
            with self.subTest(silence), self.assertRaises(ValueError):
                cinnabar.connect("tcp://a:1", token="x", silence=silence)
