"""What a program sees of a value: labels, elements, and the value as Python has it."""

import copy
import pickle
import unittest

from cinnabar import VOID, Array, BasicType, Field, Place, Sample, Value
from cinnabar._sample import SampleOrigin

TIME = 1_700_000_000_000_000


def text(string):
    return Value(BasicType.STRING, string)


def number(value):
    return Value(BasicType.DOUBLE, value)


def record(*fields):
    return Value(BasicType.REC, tuple(Field(name, value) for name, value in fields))


def sample(value, name="m"):
    return Sample(name, 7, 12, TIME, value, SampleOrigin("g1"))


class Plain(unittest.TestCase):
    def test_is_the_value_as_python_has_it(self):
        value = record(
            ("a", Value(BasicType.UINT64, 2**64 - 1)),
            ("b", Value(BasicType.ARRAY, Array(BasicType.BOOLEAN, (Value(BasicType.BOOLEAN, True),)))),
            ("c", VOID),
            ("d", Value(BasicType.OPAQUE, b"\xff")),
            ("e", Value(BasicType.STRING, b"a\xff")),
        )
        self.assertEqual(sample(value).plain, {"a": 2**64 - 1, "b": [True], "c": None, "d": b"\xff", "e": "a\ufffd"})

    def test_number_and_text_are_those_kinds_alone(self):
        for value, number_of, text_of in (
            (number(0.5), 0.5, None),
            (Value(BasicType.INT32, -1), -1, None),
            (Value(BasicType.BOOLEAN, True), None, None),
            (text("x"), None, "x"),
            (VOID, None, None),
        ):
            self.assertEqual((sample(value).number, sample(value).text), (number_of, text_of))


class Labels(unittest.TestCase):
    def test_tell_series_apart(self):
        one = sample(record(("name", text("host.load.one")), ("host", text("n1")), ("value", number(0.5))), "host.load.*")
        self.assertEqual((one.metric, one.name, one.labels, one.number), ("host.load.one", "host.load.*", {"host": "n1"}, 0.5))

    def test_of_open_families_may_have_any_name(self):
        value = record(("queue", text("mail")), ("value", number(1.0)))
        self.assertEqual(sample(value, "otlp.jobs").labels, {"queue": "mail"})
        # Of another family it is a record of its own.
        self.assertEqual(sample(value, "smon.jobs").labels, {})
        self.assertEqual(sample(value, "smon.jobs").plain, {"queue": "mail", "value": 1.0})

    def test_stand_in_their_order(self):
        for names, are_labels in (
            (["host", "cpu"], True),
            (["cpu", "host"], False),
            (["host", "a", "b"], True),
            (["host", "b", "a"], False),
            (["host", "host"], False),
            (["a", "host"], False),
        ):
            value = record(*((name, text("x")) for name in names), ("value", number(1.0)))
            with self.subTest(names):
                self.assertEqual(sample(value).number == 1.0, are_labels)

    def test_are_texts_before_a_value(self):
        for value in (
            record(("host", number(1.0)), ("value", number(1.0))),
            record(("value", number(1.0)), ("host", text("x"))),
            record(("value", number(1.0))),
            record(),
        ):
            self.assertEqual(sample(value).labels, {})
            self.assertIsNone(sample(value).number)


class Elements(unittest.TestCase):
    def test_of_a_list_have_times_of_their_own(self):
        own = Value(BasicType.UINT64, TIME + 5)
        records = (
            record(("name", text("a")), ("time", own), ("value", number(1.0))),
            record(("name", text("b")), ("value", number(2.0))),
            record(("more", Value(BasicType.BOOLEAN, True))),
        )
        cut = sample(Value(BasicType.ARRAY, Array(BasicType.REC, records)), "*")
        self.assertTrue(cut.is_cut)
        self.assertEqual([(one.metric, one.number, one.time) for one in cut.elements], [("a", 1.0, TIME + 5), ("b", 2.0, TIME)])

    def test_of_an_empty_list_are_none_and_of_a_value_itself(self):
        empty = sample(Value(BasicType.ARRAY, Array(BasicType.REC, ())))
        self.assertEqual((empty.elements, empty.is_cut), ([], False))
        one = sample(number(1.0))
        self.assertEqual((one.elements, one.is_cut), ([one], False))
        several = sample(Value(BasicType.ARRAY, Array(BasicType.DOUBLE, (number(1.0),))))
        self.assertEqual(several.elements, [several])

    def test_know_their_place(self):
        self.assertEqual(sample(number(1.0)).place, Place("g1", 12))


class Commit(unittest.TestCase):
    def test_is_that_of_its_channel_for_a_copy_too_and_for_what_was_pickled_it_is_nothing(self):
        committed = []
        one = Sample("m", 7, 12, TIME, number(1.0), SampleOrigin("g1", committed.append))
        for copied in (one, copy.deepcopy(one), one.elements[0]):
            copied.commit()
        read = pickle.loads(pickle.dumps(one))
        read.commit()
        self.assertEqual(committed, [12, 12, 12])
        self.assertEqual((read, read.place), (one, Place("g1", 12)))

    def test_of_a_value_that_is_not_kept_is_nothing(self):
        committed = []
        Sample("m", 7, 0, TIME, number(1.0), SampleOrigin("g1", committed.append)).commit()
        sample(number(1.0)).commit()
        self.assertEqual(committed, [])
