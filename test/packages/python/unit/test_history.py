"""What a server remembers, page by page."""

import asyncio
import unittest

import cinnabar
from cinnabar._history import history_arguments, read_history
from cinnabar._sample import Sample
from cinnabar._values import VOID, Array, Field, Value

TYPE = cinnabar.BasicType


def record(name, *numbers):
    text = [Field(field, Value(TYPE.STRING, one)) for field, one in (("tenant", ""), ("metric", f"test.{name}"), ("name", name))]
    labels = Field("labels", Value(TYPE.REC, (Field("host", Value(TYPE.STRING, "h1")),)))
    times = Array(TYPE.UINT64, tuple(Value(TYPE.UINT64, number) for number in numbers))
    values = Array(TYPE.DOUBLE, tuple(Value(TYPE.DOUBLE, float(number)) for number in numbers))
    arrays = [Field("times", Value(TYPE.ARRAY, times)), Field("values", Value(TYPE.ARRAY, values))]
    return Value(TYPE.REC, (*text, labels, *arrays, Field("ended", Value(TYPE.ARRAY, Array(TYPE.UINT64, ())))))


def page(*records, after=None):
    more = (Field("more", Value(TYPE.BOOLEAN, True)), Field("after", Value(TYPE.STRING, after)))
    return Value(TYPE.ARRAY, Array(TYPE.REC, (*records, *((Value(TYPE.REC, more),) if after else ()))))


def array(name, of, *numbers):
    return Field(name, Value(TYPE.ARRAY, Array(of, tuple(Value(of, number) for number in numbers))))


def windows(name, end):
    times = [array(field, TYPE.UINT64, end) for field in ("ends", "count", "first_times", "last_times")]
    numbers = [array(field, TYPE.DOUBLE, float(end + at)) for at, field in enumerate(("min", "max", "sum", "first", "last", "resets"))]
    return Value(TYPE.REC, (*record(name).value[:4], Field("step_ms", Value(TYPE.UINT64, 300000)), *times, *numbers))


def loss(*range):
    text = [Field(field, Value(TYPE.STRING, one)) for field, one in (("tenant", ""), ("metric", "test.*"), ("reason", "overflow"))]
    numbers = [Field(field, Value(TYPE.UINT64, one)) for field, one in zip(("from", "to", "lost"), range)]
    return Value(TYPE.REC, (*text, *numbers))


PAGES = (page(record("a", 1, 2), after="x"), page(record("a", 3), record("b", 1), after="y"), page(record("b", 2)))


class Pages(unittest.TestCase):
    def read(self, *pages, in_pieces=False, **labels):
        asked, seen = [], []

        async def query(metric, arguments):
            asked.append(arguments)
            return Sample(metric, 1, 0, 0, pages[len(asked) - 1])

        async def main():
            async for series in read_history(query, {"metric": "test.*", **labels}, in_pieces):
                seen.append((series.name, series.labels, series.times, series.values))

        try:
            asyncio.run(main())
        except cinnabar.StatusError as error:
            seen.append(error.status)
        return asked, seen

    def test_are_asked_for_one_after_the_other_and_each_series_comes_once(self):
        asked, seen = self.read(*PAGES)
        self.assertEqual(asked, [{"metric": "test.*"}, {"after": "x"}, {"after": "y"}])
        self.assertEqual(seen, [("a", {"host": "h1"}, [1, 2, 3], [1.0, 2.0, 3.0]), ("b", {"host": "h1"}, [1, 2], [1.0, 2.0])])

    def test_are_all_asked_of_the_same_server_below(self):
        asked, _ = self.read(*PAGES, producer="rack1")
        self.assertEqual([(one["producer"], one.get("after")) for one in asked], [("rack1", None), ("rack1", "x"), ("rack1", "y")])

    def test_say_what_is_known_of_metrics(self):
        known = {"name": "a", "type": "counter", "help": "All.", "unit": "s"}
        family = Field("family", Value(TYPE.REC, tuple(Field(name, Value(TYPE.STRING, text)) for name, text in known.items())))
        pages, seen = [page(Value(TYPE.REC, (*record("a", 1).value, family)), record("b", 1))], []

        async def query(metric, arguments):
            self.assertEqual(arguments, {"metric": "test.*", "with_families": True})
            return Sample(metric, 1, 0, 0, pages.pop(0))

        async def main():
            arguments = history_arguments("test.*", None, None, None, with_families=True)
            async for series in read_history(query, arguments, False):
                seen.append(series.family)

        asyncio.run(main())
        self.assertEqual(seen, [cinnabar.SeriesFamily(**known), None])

    def test_may_be_had_in_pieces(self):
        _, seen = self.read(*PAGES, in_pieces=True)
        self.assertEqual([times for _, _, times, _ in seen], [[1, 2], [3], [1], [2]])

    def test_may_fail_and_a_series_that_is_not_complete_does_not_come(self):
        _, seen = self.read(*PAGES[:2], VOID)
        self.assertEqual([seen[0][0], seen[1]], ["a", "UNSUPPORTED"])

    def test_may_have_windows_and_losses(self):
        pages, losses, seen = [page(loss(7, 8, 9), windows("a", 10), after="x"), page(windows("a", 20), record("a", 30))], [], []

        async def query(metric, arguments):
            return Sample(metric, 1, 0, 0, pages.pop(0))

        async def main():
            arguments = history_arguments("test.*", None, None, None, 1_234_567, True)
            self.assertEqual(arguments, {"metric": "test.*", "step_ms": 1234, "with_losses": True})
            async for series in read_history(query, arguments, False, losses.append):
                seen.append(series)

        asyncio.run(main())
        self.assertEqual(losses, [cinnabar.LossRange("", "test.*", 7, 8, 9, "overflow")])
        self.assertEqual([series.times for series in seen], [[30]])
        expected = [cinnabar.SeriesWindow(300_000_000, at, at, at + 1, at + 2, at, at + 3, at, at + 4, at, at + 5) for at in (10, 20)]
        self.assertEqual(seen[0].windows, expected)
        with self.assertRaises(ValueError):
            history_arguments("test.*", None, None, None, -1)
