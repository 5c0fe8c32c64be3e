"""SCRAM by the examples of the RFCs, and what a server may not do. What is secret is shown nowhere."""

import asyncio
import base64
import traceback
import unittest

import cinnabar
from cinnabar._credentials import PasswordCredentials, Secret, TokenCredentials, new_token
from cinnabar._scram import NotProven, ScramClient, ScramError, prepare

NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(password="pencil", identity="user"):
    return ScramClient(identity, Secret(password), NONCE)


class Exchange(unittest.TestCase):
    def test_is_that_of_rfc_7677(self):
        scram = client()
        self.assertEqual(scram.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
        proof = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        self.assertEqual(scram.final(FIRST), b"c=biws," + FIRST.split(b",")[0] + b"," + proof)
        scram.verify(FINAL)

    def test_names_are_escaped(self):
        self.assertEqual(client(identity="a=b,c/d").first(), b"n,,n=a=3Db=2Cc/d,r=rOprNGfwEbeRWgbNEkqO")

    def test_a_server_that_does_not_know_the_password_is_refused(self):
        wrong = base64.b64encode(bytes(32))
        for scram in (client(), client("another")):
            scram.final(FIRST)
            with self.assertRaises(NotProven):
                scram.verify(b"v=" + wrong)
        with self.assertRaises(NotProven):
            client().verify(FINAL)

    def test_messages_that_break_the_rfc_are_refused(self):
        salt = b"s=W22ZaJ0SNY7soEsUEjb6gQ=="
        ours = b"r=" + NONCE.encode()
        for message in (
            b"",
            b"\xff",
            FIRST[:-1].replace(b"i=409", b""),
            b"r=another,%s,i=4096" % salt,
            b"%s,%s,i=4096" % (ours, salt),
            b"%sx,%s,i=4095" % (ours, salt),
            b"%sx,%s,i=10000001" % (ours, salt),
            b"%sx,s=W22ZaJ0SNY7soEsUEjb6gR==,i=4096" % ours,
            b"m=x," + FIRST,
            FIRST + b",m=x",
        ):
            with self.subTest(message), self.assertRaises(ScramError):
                client().final(message)
        for message in (b"", b"v=", b"e=other-error", FINAL + b"\n"):
            scram = client()
            scram.final(FIRST)
            with self.subTest(message), self.assertRaises(ScramError):
                scram.verify(message)


class Preparation(unittest.TestCase):
    def test_is_that_of_rfc_4013(self):
        for text, prepared in (
            ("I\u00adX", "IX"),
            ("user", "user"),
            ("USER", "USER"),
            ("\u00aa", "a"),
            ("\u2168", "IX"),
            ("a\u00a0b", "a b"),
            ("e\u0301", "\u00e9"),
            ("\U0001f511", "\U0001f511"),
            ("\u0627\u0628", "\u0627\u0628"),
        ):
            with self.subTest(text):
                self.assertEqual(prepare(text), prepared)

    def test_refuses_what_no_password_may_have(self):
        for text in ("", "\u0007", "\u00ad", "\u06271", "\ue000", "\ufffd"):
            with self.subTest(repr(text)), self.assertRaises(ScramError):
                prepare(text)


class Secrets(unittest.TestCase):
    SECRET = "correct horse battery"

    def test_are_shown_by_nothing(self):
        secret = Secret(self.SECRET)
        for shown in (
            secret,
            PasswordCredentials("alice", secret),
            TokenCredentials(self.SECRET),
            client(self.SECRET),
            [secret],
        ):
            self.assertNotIn(self.SECRET, f"{shown} {shown!r}")

    def test_of_a_new_token_are_shown_on_demand_only(self):
        token = new_token()
        self.assertRegex(token.token, r"^cnb_[A-Za-z0-9_-]{43}$")
        self.assertRegex(token.hash, r"^[0-9a-f]{64}$")
        self.assertNotIn(token.token, f"{token} {token!r}")
        self.assertNotEqual(token.token, new_token().token)

    def test_are_in_no_error_of_connecting(self):
        async def failing(**credentials):
            try:
                await cinnabar.connect("tcp://127.0.0.1:1", **credentials)
            except cinnabar.ConnectionError as error:
                return error
            self.fail("nobody listens there")

        for credentials in ({"identity": "alice", "password": self.SECRET}, {"token": self.SECRET}):
            error = asyncio.run(failing(**credentials))
            self.assertEqual(error.code, "UNREACHABLE")
            self.assertNotIn(self.SECRET, "".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def test_in_a_url_are_refused_and_not_repeated(self):
        async def connecting():
            await cinnabar.connect(f"tcp://alice:{self.SECRET}@127.0.0.1", token="x")

        with self.assertRaises(cinnabar.ConnectionError) as raised:
            asyncio.run(connecting())
        self.assertEqual(raised.exception.code, "BAD_URL")
        self.assertNotIn(self.SECRET, str(raised.exception))


class Urls(unittest.TestCase):
    def test_have_a_default_port_and_brackets_for_ipv6(self):
        from cinnabar._session import parse_url

        self.assertEqual(parse_url("tcp://example.com").port, 7650)
        address = parse_url("tls://[::1]:99")
        self.assertEqual((address.host, address.port, address.is_tls), ("::1", 99, True))

    def test_of_another_kind_are_refused(self):
        from cinnabar._session import parse_url

        for url in ("", "localhost", "localhost:7650", "ws://localhost", "tcp://", "tcp://h:x", "tcp://h/path", "tcp://h?x"):
            with self.subTest(url), self.assertRaises(cinnabar.ConnectionError) as raised:
                parse_url(url)
            self.assertEqual(raised.exception.code, "BAD_URL")


class Credentials(unittest.TestCase):
    def test_are_exactly_one(self):
        for credentials in (
            {},
            {"identity": "a"},
            {"password": "p"},
            {"token": "t", "certificate": True},
            {"identity": "a", "password": "p", "token": "t"},
        ):
            with self.subTest(credentials), self.assertRaises(ValueError):
                cinnabar.connect("tcp://127.0.0.1", **credentials)
