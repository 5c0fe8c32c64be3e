"""Logging in, and one session after the other: what is never sent, several addresses, and tokens that expire."""

import asyncio
import unittest
from unittest import mock

import cinnabar
from cinnabar._connection import Connection
from cinnabar._credentials import CertificateCredentials, PasswordCredentials, Secret, TokenCredentials
from cinnabar._session import Security, Session, _Opening, parse_url
from cinnabar._sessions import Sessions

from fake_producer import capabilities, response, unreachable
from skipping_time import run
from test_connection import Listener, Wire

PASSWORD = "correct horse battery"
BY_PASSWORD = PasswordCredentials("alice", Secret(PASSWORD))
BY_TOKEN = TokenCredentials("cnb_secret")


class Place(Wire):
    """A wire to an address."""

    def __init__(self, host):
        super().__init__()
        self._host = host

    def get_extra_info(self, name):
        return (self._host, 7650) if name == "peername" else None


async def log_in(host, auth, credentials, answer=b"", wrap=(), proof=None):
    """What was written, and the error if there was one."""
    wire = Place(host)
    connection = Connection("tcp://fake:7650", 30.0, Listener())
    connection.connection_made(wire)
    connection.data_received(capabilities(auth=auth))
    proof = Secret("cnb_secret") if credentials is BY_TOKEN else proof
    opening = _Opening(connection, parse_url("tcp://fake:7650"), credentials, proof, Security(None, None, wrap))
    error = None
    if answer:
        connection._loop.call_later(1, connection.data_received, answer)
    try:
        await (opening._add_tls() if wrap else opening._log_in())
    except cinnabar.ConnectionError as raised:
        error = raised
    finally:
        connection.close()
    return b"".join(wire.written), error


class LoggingIn(unittest.TestCase):
    def test_shows_a_secret_to_this_machine_alone_where_nothing_is_encrypted(self):
        async def main():
            for host in ("192.0.2.1", "2001:db8::1", "10.0.0.1", "::ffff:192.0.2.1", "not an address"):
                for auth, credentials in ((("password",), BY_PASSWORD), (("token",), BY_TOKEN)):
                    written, error = await log_in(host, auth, credentials)
                    self.assertEqual((written, error.code), (b"", "NO_METHOD"))
                    self.assertIn("could be read on the way", str(error))
            for host in ("127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"):
                for auth, credentials, secret in ((("password",), BY_PASSWORD, PASSWORD), (("token",), BY_TOKEN, "cnb_secret")):
                    written, error = await log_in(host, auth, credentials, response(1, 0, 9))
                    self.assertIsNone(error)
                    self.assertIn(secret.encode(), written)

        run(main())

    def test_prefers_the_method_that_does_not_show_the_password(self):
        async def main():
            written, error = await log_in("127.0.0.1", ("password", "scram-sha-256"), BY_PASSWORD, response(1, 2, 0, "no"))
            self.assertEqual(error.code, "LOGIN_FAILED")
            self.assertIn(b"scram-sha-256", written)
            self.assertNotIn(PASSWORD.encode(), written)

        run(main())

    def test_needs_the_proof_of_the_server(self):
        async def main():
            _, error = await log_in("127.0.0.1", ("scram-sha-256",), BY_PASSWORD, response(1, 0, 9))
            self.assertEqual(error.code, "SERVER_NOT_PROVEN")

        run(main())

    def test_says_what_the_server_offers_instead(self):
        async def main():
            for credentials in (BY_PASSWORD, BY_TOKEN, CertificateCredentials()):
                written, error = await log_in("127.0.0.1", ("strange",), credentials)
                self.assertEqual((written, error.code), (b"", "NO_METHOD"))
                self.assertIn("the server offers strange", str(error))

        run(main())

    def test_needs_the_layer_that_was_requested(self):
        async def main():
            written, error = await log_in("127.0.0.1", ("token",), BY_TOKEN, wrap=("tls",))
            self.assertEqual((written, error.code), (b"", "NO_LAYER"))

        run(main())


class OneAfterTheOther(unittest.TestCase):
    URLS = ("tcp://a:1", "tcp://b:2", "tcp://c:3")

    def sessions(self, credentials=BY_PASSWORD):
        return Sessions([parse_url(url) for url in self.URLS], credentials, Security(None, None, ()), 30.0)

    def test_take_the_first_address_that_answers_beginning_with_the_last_one(self):
        up = {"tcp://b:2"}
        tried = []

        async def open_session(address, *_):
            tried.append(address.url)
            if address.url not in up:
                raise unreachable()
            return Session(None, 9, True)

        async def main():
            sessions = self.sessions()
            with mock.patch("cinnabar._sessions.open_session", open_session):
                await sessions.next(Listener())
                await sessions.next(Listener())
                up.clear()
                with self.assertRaises(cinnabar.ConnectionError) as raised:
                    await sessions.next(Listener())
            self.assertEqual([url[6] for url in tried], list("ab" "b" "bca"))
            self.assertEqual(raised.exception.code, "UNREACHABLE")
            self.assertEqual(str(raised.exception).count("nobody is there"), 3)

        run(main())

    def test_do_not_try_another_address_where_that_would_fail_as_well(self):
        tried = []

        async def open_session(address, *_):
            tried.append(address.url)
            raise cinnabar.ConnectionError(cinnabar.ErrorCode.LOGIN_FAILED, "wrong password")

        async def main():
            with mock.patch("cinnabar._sessions.open_session", open_session):
                with self.assertRaises(cinnabar.ConnectionError):
                    await self.sessions().next(Listener())
            self.assertEqual(len(tried), 1)

        run(main())

    def test_do_not_use_a_token_again_that_was_withdrawn(self):
        tokens = ["first", "first", "second"]
        used = []

        async def open_session(_, __, proof, *___):
            used.append(proof.reveal())
            return Session(None, 9, True)

        async def main():
            withdrawn = cinnabar.ConnectionError(cinnabar.ErrorCode.WITHDRAWN, "the token was revoked")
            sessions = self.sessions(TokenCredentials(lambda: tokens.pop(0)))
            with mock.patch("cinnabar._sessions.open_session", open_session):
                await sessions.next(Listener())
                self.assertTrue(sessions.may_continue(withdrawn))
                with self.assertRaises(cinnabar.ConnectionError) as raised:
                    await sessions.next(Listener())
                self.assertIs(raised.exception, withdrawn)
                await sessions.next(Listener())
            self.assertEqual(used, ["first", "second"])
            self.assertFalse(self.sessions(BY_TOKEN).may_continue(withdrawn))
            self.assertFalse(self.sessions().may_continue(withdrawn))

        run(main())

    def test_end_with_the_error_of_the_function_that_provides_tokens(self):
        def failing():
            raise KeyError("nobody knows")

        async def main():
            with self.assertRaises(cinnabar.ConnectionError) as raised:
                await self.sessions(TokenCredentials(failing)).next(Listener())
            self.assertEqual(raised.exception.code, "NO_TOKEN")

        run(main())

    def test_do_not_wait_for_ever_for_a_token(self):
        async def main():
            sessions = self.sessions(TokenCredentials(asyncio.get_running_loop().create_future))
            with self.assertRaises(cinnabar.ConnectionError) as raised:
                await sessions.next(Listener())
            self.assertEqual(raised.exception.code, "TIMEOUT")

        run(main())

    def test_show_no_secret_that_cannot_be_sent(self):
        async def main():
            broken = "correct \udc80 horse"
            for method, credentials in (("password", PasswordCredentials("alice", Secret(broken))), ("token", TokenCredentials("x"))):
                with self.assertRaises(ValueError) as raised:
                    await log_in("127.0.0.1", (method,), credentials, proof=Secret(broken))
                self.assertNotIn("correct", repr(raised.exception))
                self.assertIsNone(raised.exception.__context__)

        run(main())
