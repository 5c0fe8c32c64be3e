"""What an expression comes to, answer by answer."""

import asyncio
import datetime
import unittest

import cinnabar
from cinnabar._expression import expression_arguments, read_expression
from cinnabar._sample import Sample
from cinnabar._values import VOID, Array, Field, Value

TYPE = cinnabar.BasicType


def text(name, value):
    return Field(name, Value(TYPE.STRING, value))


def array(name, of, *items):
    return Field(name, Value(TYPE.ARRAY, Array(of, tuple(Value(of, item) for item in items))))


def record(*fields):
    return Value(TYPE.REC, fields)


def summary(type, *more):
    numbers = [Field(name, Value(TYPE.UINT64, number)) for name, number in (("series", 2), ("samples", 9), ("took", 1500))]
    return record(text("type", type), *numbers, array("warnings", TYPE.STRING, "w"), array("infos", TYPE.STRING, "i"), *more)


def piece(host, *times):
    labels = Field("labels", record(text("host", host)))
    values = array("values", TYPE.DOUBLE, *(10.0 * time for time in times))
    return record(text("name", "a"), labels, array("times", TYPE.UINT64, *times), values)


def more(after):
    return record(Field("more", Value(TYPE.BOOLEAN, True)), text("after", after))


def error(*places):
    numbers = [Field(name, Value(TYPE.UINT32, place)) for name, place in zip(("error_from", "error_to"), places)]
    return record(text("error_type", "bad_data"), text("error", "1:2: wrong"), *numbers)


class Answers(unittest.TestCase):
    def read(self, *pages, expr="a"):
        asked = []

        async def query(metric, arguments):
            asked.append(arguments)
            records = pages[len(asked) - 1]
            return Sample(metric, 1, 0, 0, VOID if records is None else Value(TYPE.ARRAY, Array(TYPE.REC, tuple(records))))

        result = asyncio.run(read_expression(query, {"expr": expr}))
        return asked, result

    def test_are_asked_for_until_they_are_there_and_each_series_comes_once(self):
        asked, result = self.read([more("x")], [summary("matrix"), piece("h1", 1, 2), more("y")], [piece("h1", 3), piece("h2", 1)])
        self.assertEqual(asked, [{"expr": "a"}, {"after": "x"}, {"after": "y"}])
        series = [
            cinnabar.ExpressionSeries("a", {"host": "h1"}, [1, 2, 3], [10.0, 20.0, 30.0]),
            cinnabar.ExpressionSeries("a", {"host": "h2"}, [1], [10.0]),
        ]
        self.assertEqual(result, cinnabar.ExpressionResult("matrix", series, "", 9, 1500, ["w"], ["i"]))

    def test_may_have_losses(self):
        given = [Field(name, Value(TYPE.UINT64, number)) for name, number in (("from", 7), ("to", 8), ("lost", 9))]
        loss = record(text("tenant", "t"), text("metric", "a.b"), *given, text("reason", "overflow"))
        losses = []

        async def query(metric, arguments):
            return Sample(metric, 1, 0, 0, Value(TYPE.ARRAY, Array(TYPE.REC, (summary("matrix"), loss, piece("h1", 1)))))

        result = asyncio.run(read_expression(query, {"expr": "a"}, losses.append))
        self.assertEqual(losses, [cinnabar.LossRange("t", "a.b", 7, 8, 9, "overflow")])
        self.assertEqual([series.times for series in result.series], [[1]])

    def test_may_be_a_text(self):
        _, result = self.read([summary("string", text("text", "x"))])
        self.assertEqual((result.type, result.text, result.series), ("string", "x", []))

    def test_may_be_an_error_with_its_place_or_without(self):
        with self.assertRaisesRegex(cinnabar.ExpressionError, "1:2: wrong") as caught:
            self.read([error()])
        self.assertEqual((caught.exception.type, caught.exception.position), ("bad_data", None))
        expr = '"\N{GRINNING FACE}" + )'
        with self.assertRaises(cinnabar.ExpressionError) as caught:
            self.read([more("x")], [error(6, 7)], expr=expr)
        self.assertEqual(expr[slice(*caught.exception.position)], ")")

    def test_may_be_none_at_all(self):
        with self.assertRaises(cinnabar.StatusError) as caught:
            self.read(None)
        self.assertEqual(caught.exception.status, "UNSUPPORTED")


class Arguments(unittest.TestCase):
    def test_are_those_of_the_protocol(self):
        until = datetime.datetime(1970, 1, 1, 0, 0, 7, tzinfo=datetime.timezone.utc)
        given = expression_arguments("a", None, 5, until, 60_000_000, 10, True)
        self.assertEqual(given, {"expr": "a", "from": 5, "to": 7_000_000, "step_ms": 60_000, "limit": 10, "with_losses": True})
        self.assertEqual(expression_arguments("a", 1, None, None, None, None), {"expr": "a", "at": 1})

    def test_are_refused_if_they_are_no_times(self):
        for at, since, step in ((-1, None, None), (None, datetime.datetime(2026, 1, 1), None), (None, 1, 999)):
            with self.assertRaises(ValueError):
                expression_arguments("a", at, since, None, step, None)
